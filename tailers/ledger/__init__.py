"""The ledger of failed and suspect items, as one tailer reads and writes it."""
