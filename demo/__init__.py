"""The guided run: catalogues the Python standard library of this machine, with bad luck on purpose.

`run.py` conducts, `functions.py` is the work, `catalogue.py` the downstream that misbehaves, `journal.py` what the
functions write themselves and what is judged by it, `view.py` what is shown meanwhile.
"""
