"""The gateway's configuration (`gateway.yaml`): its addresses, and every bound on its load."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..foundation.config import Bytes, Seconds
from ..model.address import DEFAULT_GATEWAY
from ..model.did_you_mean import meant
from ..model.priority import LONGEST_NAME, LOWEST, Priority
from ..sdk.call import LARGEST_PAYLOAD
from ..wire.bounds import USUAL, PeerBounds
from .callback_config import CallbackConfig
from .oidc import OidcConfig
from .rules.objectives import Objective
from .rules.service_levels import ServiceLevel


class Level(BaseModel):
    """The service level of one priority, beyond which an alert is raised, and its objectives. None: the default of the
    priority.

    wait            seconds that a due workload may wait
    attempts        attempts that a live workload may spend
    start           seconds after its due time within which a workload should start
    start_share     the share of workloads that must do so (0 to 1)
    accepted_share  the share of submissions that must be accepted (0 to 1)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    wait: Annotated[Seconds, Field(gt=0)] | None = None
    attempts: int | None = Field(default=None, ge=0)
    start: Annotated[Seconds, Field(gt=0)] | None = None
    start_share: float | None = Field(default=None, gt=0, lt=1)
    accepted_share: float | None = Field(default=None, gt=0, lt=1)


class ServiceLevels(BaseModel):
    """The service level of each priority: how long a due workload may wait, and how many attempts it may spend.
    Defaults: 30 s and 2 for interactive work, 2.5 h and 8 for eventual work; between and beyond them 5 and 10 attempts,
    with the time that a backoff of n^4 + 5 s takes to get there (17 min, 7 h). Default objectives: 95 % start within 5
    s, 30 s, 5 min and 1 h (shares are counted in buckets, so a delay that is no bound of the metric counts as the next
    lower one), and 99.9 % of submissions are accepted. Priorities of one's own (TAILRACE_PRIORITIES) are named here
    too; each has the defaults of the usual priority that is as far down among the four."""

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, Level] = Field(init=False)

    interactive: Level = Level(wait=30, attempts=2, start=5, start_share=0.95, accepted_share=0.999)
    user_visible: Level = Level(wait=17 * 60, attempts=5, start=30, start_share=0.95, accepted_share=0.999)
    eventual: Level = Level(wait=2.5 * 3600, attempts=8, start=300, start_share=0.95, accepted_share=0.999)
    reporting: Level = Level(wait=7 * 3600, attempts=10, start=3600, start_share=0.95, accepted_share=0.999)

    @model_validator(mode="after")
    def _are_levels(self) -> ServiceLevels:
        known = [priority.label for priority in Priority]
        for name in [*self.model_fields_set, *self.__pydantic_extra__]:
            if name not in known:
                raise ValueError(f"there is no priority {name[:LONGEST_NAME]!r}: {meant(name[:LONGEST_NAME], known)}")
        return self

    def rule(self) -> Mapping[Priority, ServiceLevel]:
        """The service levels, by priority, with defaults for keys that the file leaves out."""
        return {
            priority: ServiceLevel(given["wait"], given["attempts"])
            for priority in Priority
            if (given := self._given(priority))
        }

    def objectives(self) -> Mapping[str, Objective]:
        """The objectives, by the priority's name, with the same defaults."""
        return {
            priority.label: Objective(given["start"], given["start_share"], given["accepted_share"])
            for priority in Priority
            if (given := self._given(priority))
        }

    def _given(self, priority: Priority) -> dict[str, Any]:
        fields = [*type(self).model_fields]
        name = priority.label if priority.label in fields else fields[round(3 * priority / LOWEST)]
        usual: dict[str, Any] = type(self).model_fields[name].default.model_dump()
        level = getattr(self, priority.label, None)
        return usual if level is None else usual | level.model_dump(exclude_none=True)


class GatewayConfig(BaseModel):
    """The configuration of a gateway. Defaults stand in parentheses, with their reasons.

    listen               host:port (default 127.0.0.1:8786); beyond loopback, or as tls:host:port, with certificates:
                         `tls` in access.yaml
    token_listen         host:port for people and programs that show a token and have no certificate, over TLS (none)
    oidc                 an OpenID Connect issuer whose signed tokens are accepted there too (none; see there)
    direct               whether asyncio clients of this machine may submit over a plain socket instead of gRPC, on
                         Linux (true); the first answer tells them its name
    max_batch            workloads of one Submit, ids of one Status or Cancel (1000, what one commit stores in a few ms)
    max_payload          bytes of one payload (1 MiB; larger data belongs in an object store, its key in the payload)
    max_delay            how far ahead a workload may be due (30 days)
    max_headers          bytes of one workload's header names and values (8 KiB)
    submitting_items     workloads being stored at once; beyond it Overloaded (20,000)
    submitting_bytes     payload bytes of these (64 MiB)
    waiting_results      Result calls that wait at once, and likewise waits for jobs; beyond it Overloaded (10,000)
    longest_wait         seconds that one Result call may wait (60 s); clients ask again
    watchers             Watch calls at once; beyond it Overloaded (256)
    capacity             slots of the whole fleet, which reserves may not exceed; 0: not declared
    replays              replays that read at once (4: each is a tailer beside the live ones, with a session at the
                         scheduler and a window of payloads, 16 MiB unless its file says otherwise)
    spool_items          workloads that are spooled while the store is away (1,000,000: five minutes at 3,000 a second);
                         beyond it Overloaded; 0: nothing is spooled
    spool_bytes          payload bytes of these (512 MiB)
    act_retention        how long acts of operators are kept (a year, at most the last million)
    spool_retention      how long the id of a spooled workload is known, counted from its move to the queue or its due
                         time (7 days, as long as the queue knows its own)
    store_patience       seconds that a store apart gets to answer a submission before it counts as away (2 s: a healthy
                         one takes milliseconds, and a client waits 10 s)
    service_levels       delays and attempts of each priority beyond which `tailrace alerts` raises an alert. They stand
                         here because only the gateway sees the queue, the tailers and itself
    look_every           seconds between looks for alerts and forecasts (5 s: a few reads; 0: only when somebody asks)
    peers                limits and timeouts for the connections of each listener (see there)
    metrics_listen       host:port that answers GET /metrics with the numbers of the platform, beyond loopback by HTTPS,
                         with certificates; that of a node answers for the whole node (none)
    callbacks            requests over HTTP (webhooks) when jobs or workloads end (none; see there)
    max_redrives         how often a dead letter may be redriven and die again (10: by then the cause is not chance)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    listen: str = DEFAULT_GATEWAY
    token_listen: str = ""
    oidc: OidcConfig | None = None
    callbacks: CallbackConfig | None = None
    direct: bool = True
    max_batch: int = Field(default=1000, ge=1, le=10_000)
    max_payload: Bytes = Field(default=1 << 20, ge=1, le=LARGEST_PAYLOAD)
    max_delay: Seconds = Field(default=30 * 86400.0, ge=0)
    max_headers: Bytes = Field(default=8 << 10, ge=0, le=1 << 20)
    submitting_items: int = Field(default=20_000, ge=1)
    submitting_bytes: Bytes = Field(default=64 << 20, ge=1)
    waiting_results: int = Field(default=10_000, ge=1)
    longest_wait: Seconds = Field(default=60.0, gt=0)
    watchers: int = Field(default=256, ge=1)
    capacity: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    replays: int = Field(default=4, ge=1, le=100)
    spool_items: int = Field(default=1_000_000, ge=0)
    spool_bytes: Bytes = Field(default=512 << 20, ge=1)
    act_retention: Seconds = Field(default=365 * 86400.0, gt=0)
    spool_retention: Seconds = Field(default=7 * 86400.0, ge=0)
    store_patience: Seconds = Field(default=2.0, gt=0)
    metrics_listen: str = ""
    max_redrives: int = Field(default=10, ge=0)
    peers: PeerBounds = USUAL
    service_levels: ServiceLevels = ServiceLevels()
    look_every: Seconds = Field(default=5.0, ge=0)
