"""The composition root: which parts run in which process.

`parts.py` makes each part from plain arguments; `node.py` is the process that owns the embedded stores; `platform.py`
runs everything as child processes (`tailrace up`, the demo, the bench, tests); `running.py` runs one part in the
foreground until a signal.
"""
