"""The common base of every store on PostgreSQL: the server, its connections, hints, and the steps of its schema."""
