"""The ground of every store and source on Redis: the server, its connections, and what it must promise."""
