"""What people type that a gateway answers."""
