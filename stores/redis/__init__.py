"""The common base of every store and source on Redis: the server, its connections, and the promises that it must
keep."""
