"""The base of every store on SQLite: a file, its single writer, its errors and its backups."""
