"""Programs that a team would write instead, for the scenario `rivals`: each file a program as its library's own pages
show it.

They find their server in the environment (`settings.py`) and run `work.noop` for each item. Those on the server of a
queue are also what submits to them (`feeding.py`), and say what of their work a SIGKILL costs.
"""
