"""Turns of the event loop that a store leaves to the tailer that was handed a claim, before it answers the submitter of
the claimed items: writing that answer keeps the event loop busy as long as a hop of the item. Decision 95 says why
these are turns, and no signal."""

#: Turns until the tailer has written the frame that pushes the claimed items.
PUSHED = 4
#: Turns until that tailer waits for a claim again.
WAITS_AGAIN = 6
