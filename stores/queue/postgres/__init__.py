"""The queue on PostgreSQL: each method calls one function of the schema in `stores/postgres/migrations`."""
