"""Where in a stream something begins, and moving a checkpoint there by hand."""
