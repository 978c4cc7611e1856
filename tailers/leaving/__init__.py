"""How items leave a tailer: settled in their queue, parked, dead, dropped, expired or detached, each durably first."""
