"""Seeks: positions of a stream where something begins, and moving a checkpoint there by hand."""
