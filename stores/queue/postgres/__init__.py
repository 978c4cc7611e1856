"""The queue on PostgreSQL: each verb is one function of the schema in `stores/postgres/migrations`."""
