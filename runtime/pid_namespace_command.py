"""A supervisor's side of an executor in a PID namespace of its own: tests for one, and makes the command for it."""

from __future__ import annotations

import os
import subprocess
import sys

from ..model.errors import UserError
from . import bare_interpreter

#: Processes of an executor that stand still between two runs: the launcher, the init, itself.
PROCESSES = 3
#: Seconds that trying it may take, on a machine that is busy.
TRY_WITHIN = 20.0


def inside(program: list[str]) -> list[str]:
    """The command that starts a program in a namespace of its own, in `bare_interpreter.environment()`."""
    return bare_interpreter.command("pid_namespace", str(os.getpid()), *program)


def check_supported() -> None:
    """Tries an empty program in a namespace once. Raises UserError, which says what the system lacks, when it fails."""
    if sys.platform != "linux":
        raise UserError("pid_namespace: only Linux has PID namespaces: leave it out of the worker's configuration here")
    command = inside([sys.executable, "-I", "-S", "-c", ""])
    try:
        tried = subprocess.run(
            command,
            env=bare_interpreter.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=TRY_WITHIN,
            start_new_session=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(
            f"pid_namespace: an empty program did not end in a PID namespace within {TRY_WITHIN:g} s: leave it out of "
            "the worker's configuration, or try again when the machine is less busy"
        ) from None
    if tried.returncode:
        said = tried.stderr.strip() or f"an empty program ended with code {tried.returncode}"
        raise UserError(
            f"pid_namespace: this system gives the worker none ({said}). One needs CAP_SYS_ADMIN (root; in a container "
            "it is to be added), or user namespaces for all (sysctl user.max_user_namespaces, user.max_pid_namespaces, "
            "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns): allow one of them, or "
            "leave pid_namespace out of the worker's configuration"
        )
