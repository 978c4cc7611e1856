"""What every store and source on Redis rests on: the server, its connections, and what it must promise."""
