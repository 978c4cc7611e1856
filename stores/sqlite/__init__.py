"""The ground of every store on SQLite: one file, its one writer, its errors, its copies."""
