"""The guided run: catalogues the Python standard library of this machine, with faults on purpose.

`run.py` conducts it, `functions.py` does the work, `catalogue.py` is the downstream service that misbehaves,
`journal.py` has the lines that the functions write themselves and the judgement by them, `view.py` draws the progress.
"""
