"""The ground of the log and the source on Kafka: one protocol of a client, its two clients, and their errors."""
