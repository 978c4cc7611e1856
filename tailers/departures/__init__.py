"""Ways of items out of a tailer: settled in their queue, parked, dead, dropped, expired or detached, durably first."""
