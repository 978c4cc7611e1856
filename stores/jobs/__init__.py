"""Jobs: trees of containers whose items feed each other."""
