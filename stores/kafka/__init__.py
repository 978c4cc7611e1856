"""What the log and the source on Kafka rest on: one protocol of a client, its two clients, and their errors."""
