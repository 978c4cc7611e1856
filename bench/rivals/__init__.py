"""What a team would write instead, for the scenario `rivals`: each file a program as its library's own pages show it.

They find their broker in the environment (`settings.py`) and run `work.noop` for each record.
"""
