"""Twins of what rests in the queue of an engine: rows as the queue's own submission wrote them, but under ids and times
that are so many milliseconds older, as if they had been submitted then.

That is what a backlog of ten million consists of, and the database copies rows several times as fast as anybody can
submit them. What waits twice over must all have been submitted together, so that no two twins meet in one id, and
nothing may use the queue meanwhile.
"""
