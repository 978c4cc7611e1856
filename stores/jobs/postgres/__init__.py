"""Jobs on PostgreSQL, in the queue's own schema."""
