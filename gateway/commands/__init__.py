"""Commands that a gateway answers."""
