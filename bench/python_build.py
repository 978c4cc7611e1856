"""The build of this Python: finds out whether it was built with optimisation.

Distributions, official images, uv and Homebrew build CPython with profile-guided optimisation, and it is a tenth to a
fifth quicker for it; a Python from `pyenv install` or a bare `./configure` is not, unless told. Figures of the two do
not compare.
"""

from __future__ import annotations

import sys
import sysconfig

#: Advice that is shown beside the figures.
ADVICE = (
    "This Python was built without profile-guided optimisation, which costs a tenth and more of each figure. "
    "Most others have it: your distribution's (make PYTHON=/usr/bin/python3), or one built with "
    "./configure --enable-optimizations --with-lto."
)


def optimised(configured: str | None, prefix: str) -> bool | None:
    """Whether a Python is optimised, by its `configure` options (`CONFIG_ARGS`) and its prefix; None: it does not say.

    Distributions, whose prefix is `/usr`, ask for the optimised build in other ways, and all of theirs are.
    """
    if configured and "--enable-optimizations" in configured:
        return True
    if prefix == "/usr":
        return True
    return False if configured else None


def this_one() -> bool | None:
    """Whether the Python that runs this is optimised."""
    return optimised(sysconfig.get_config_var("CONFIG_ARGS"), sys.base_prefix)
