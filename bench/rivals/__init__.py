"""Programs that a team would write instead of using tailrace, for the scenario `rivals`: each file is a program as its
library's own pages show it.

They find their server in the environment (`settings.py`) and run `work.noop` for each item. Programs on the server of a
queue also submit to themselves (`feeding.py`), and tell the cost of a SIGKILL.
"""
