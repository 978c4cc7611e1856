"""Twins of items that wait in a queue: rows as the queue's own submission wrote them, but under ids and times that are
so many milliseconds older, as if they had been submitted then.

A backlog of ten million consists of them, since the database copies rows several times as fast as anybody can submit
them. The first items must all have been submitted together, so that no two twins meet in one id, and nothing may use
the queue meanwhile.
"""
