"""tailrace runs functions on work that already rests somewhere: a queue, a stream, a folder.

This is the whole public surface. It is lazy (PEP 562): a name is imported when it is first used, so that
`import tailrace` alone loads neither gRPC nor pydantic nor YAML.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model.errors import AlreadyInUse as AlreadyInUse
    from .model.errors import ConfigError as ConfigError
    from .model.errors import Conflict as Conflict
    from .model.errors import DeclarationError as DeclarationError
    from .model.errors import Fatal as Fatal
    from .model.errors import InvalidPayload as InvalidPayload
    from .model.errors import InvalidRequest as InvalidRequest
    from .model.errors import Overloaded as Overloaded
    from .model.errors import PartlySubmitted as PartlySubmitted
    from .model.errors import ResultGone as ResultGone
    from .model.errors import RetryLater as RetryLater
    from .model.errors import StoreFull as StoreFull
    from .model.errors import TailraceError as TailraceError
    from .model.errors import Throttled as Throttled
    from .model.errors import Unavailable as Unavailable
    from .model.errors import UnknownFunction as UnknownFunction
    from .model.errors import UserError as UserError
    from .model.errors import WorkloadFailed as WorkloadFailed
    from .model.one_item import Peeked as Peeked
    from .model.one_item import Rescheduled as Rescheduled
    from .model.outcome import Outcome as Outcome
    from .model.priority import Priority as Priority
    from .model.reference import Reference as Reference
    from .model.retry import Retry as Retry
    from .model.status import WorkloadStatus as WorkloadStatus
    from .sdk.async_client import AsyncClient as AsyncClient
    from .sdk.call import Call as Call
    from .sdk.client import Client as Client
    from .sdk.context import Context as Context
    from .sdk.function import Function as Function
    from .sdk.function import function as function
    from .sdk.gathered import Gathered as Gathered
    from .sdk.handle import AsyncHandle as AsyncHandle
    from .sdk.handle import Handle as Handle
    from .sdk.job_drafts import Stage as Stage
    from .sdk.jobs import AsyncJob as AsyncJob
    from .sdk.jobs import Job as Job
    from .stores.outbox.enqueue import Enqueued as Enqueued
    from .stores.outbox.enqueue import enqueue as enqueue
    from .wire.schedule_messages import ScheduleView as ScheduleView

__version__ = "0.1.0"

#: Where each name lives, by module.
_HOMES = {
    "sdk.async_client": ("AsyncClient",),
    "sdk.call": ("Call",),
    "sdk.client": ("Client",),
    "sdk.context": ("Context",),
    "sdk.function": ("Function", "function"),
    "sdk.gathered": ("Gathered",),
    "sdk.handle": ("AsyncHandle", "Handle"),
    "sdk.job_drafts": ("Stage",),
    "sdk.jobs": ("AsyncJob", "Job"),
    "model.errors": (
        "AlreadyInUse",
        "ConfigError",
        "Conflict",
        "DeclarationError",
        "Fatal",
        "InvalidPayload",
        "InvalidRequest",
        "Overloaded",
        "PartlySubmitted",
        "ResultGone",
        "RetryLater",
        "StoreFull",
        "TailraceError",
        "Throttled",
        "Unavailable",
        "UnknownFunction",
        "UserError",
        "WorkloadFailed",
    ),
    "model.one_item": ("Peeked", "Rescheduled"),
    "model.outcome": ("Outcome",),
    "model.priority": ("Priority",),
    "model.reference": ("Reference",),
    "model.retry": ("Retry",),
    "model.status": ("WorkloadStatus",),
    "wire.schedule_messages": ("ScheduleView",),
    "stores.outbox.enqueue": ("Enqueued", "enqueue"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "AlreadyInUse",
    "AsyncClient",
    "AsyncHandle",
    "AsyncJob",
    "Call",
    "Client",
    "ConfigError",
    "Conflict",
    "Context",
    "DeclarationError",
    "Enqueued",
    "Fatal",
    "Function",
    "Gathered",
    "Handle",
    "InvalidPayload",
    "InvalidRequest",
    "Job",
    "Outcome",
    "Overloaded",
    "PartlySubmitted",
    "Peeked",
    "Priority",
    "Reference",
    "Rescheduled",
    "ResultGone",
    "Retry",
    "RetryLater",
    "ScheduleView",
    "Stage",
    "StoreFull",
    "TailraceError",
    "Throttled",
    "Unavailable",
    "UnknownFunction",
    "UserError",
    "WorkloadFailed",
    "WorkloadStatus",
    "__version__",
    "enqueue",
    "function",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'tailrace' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
