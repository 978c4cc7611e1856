"""Takeover of a stream from its former owner: its row, the schedulers that it names, and items that run on."""
