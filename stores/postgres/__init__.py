"""What every store on PostgreSQL rests on: the server, its connections, hints, and the steps of its schema."""
