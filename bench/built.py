"""The build of this Python: whether it was built to be quick.

Distributions, official images, uv and Homebrew build CPython with profile-guided optimisation, and it is a tenth to a
fifth quicker for it; what `pyenv install` or a bare `./configure` builds is not, unless told. Figures of the two do not
compare.
"""

from __future__ import annotations

import sys
import sysconfig

#: What to do about it; said beside the figures.
ADVICE = (
    "This Python was built without profile-guided optimisation, which costs a tenth and more of each figure. "
    "Most others have it: your distribution's (make PYTHON=/usr/bin/python3), or one built with "
    "./configure --enable-optimizations --with-lto."
)


def optimised(configured: str | None, prefix: str) -> bool | None:
    """Whether a Python is, by what its `configure` was told (`CONFIG_ARGS`) and its prefix; None: it does not say.

    Distributions, whose prefix is `/usr`, ask for the optimised build in other ways, and theirs all are.
    """
    if configured and "--enable-optimizations" in configured:
        return True
    if prefix == "/usr":
        return True
    return False if configured else None


def this_one() -> bool | None:
    """Whether the Python that runs this is."""
    return optimised(sysconfig.get_config_var("CONFIG_ARGS"), sys.base_prefix)
