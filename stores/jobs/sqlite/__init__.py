"""Jobs on SQLite, in the queue's own file."""
