"""How tailers are, for people and for the watchdog: one with a pump of its own, and one of a shared source."""
