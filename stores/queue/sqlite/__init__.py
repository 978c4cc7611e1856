"""The queue on SQLite: an embedded file with one writer thread."""
