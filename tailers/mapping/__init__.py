"""What a record of a source becomes: its function, kind, key and headers, as the tailer's file says."""
