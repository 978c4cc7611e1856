"""How a stream goes from one owner to the next: its row, the schedulers that it names, and what runs on meanwhile."""
