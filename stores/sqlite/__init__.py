"""What every store on SQLite rests on: one file, its one writer, its errors, its copies."""
