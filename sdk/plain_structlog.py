"""structlog without rich. What imports it here before anything else imports structlog spares a process a third of its
start: structlog's console renderer would load rich, pygments and attrs for coloured tracebacks, and no line of our logs
has one (telemetry.py). Where rich or structlog is there already, nothing is changed."""

from __future__ import annotations

import sys
from typing import Any, cast

if "rich" in sys.modules or "structlog" in sys.modules:
    import structlog
else:
    cast("dict[str, Any]", sys.modules)["rich"] = None  # what an import then says: there is none
    try:
        import structlog
    finally:
        del sys.modules["rich"]

__all__ = ["structlog"]
