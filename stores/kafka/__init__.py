"""The client side of Kafka, for the log and the source on it: one protocol of a client, its two clients, and their
errors."""
