"""Turns of the event loop that a store leaves to whoever was handed a claim, before it answers whoever submitted that:
an answer takes the event loop as long as a hop of the item. Why turns, and no signal: decision 95."""

#: Until the frame is written that pushes what was leased.
PUSHED = 4
#: Until whoever pushed it waits for a lease again.
WAITS_AGAIN = 6
