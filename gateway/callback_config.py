"""The configuration of callbacks over HTTP."""

from __future__ import annotations

import ipaddress

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from ..foundation.config import Seconds
from .rules.callback import Network, key_of


class CallbackConfig(BaseModel):
    """Callbacks (webhooks) over HTTP for jobs and workloads with `on_done="https://…"`.

    secrets  one to four of `whsec_…` (base64 of 24 to 64 random bytes), with which requests are signed by the Standard
             Webhooks scheme; each of them signs, so that a receiver can change from one to the next
    allow    networks that are not public and may still be called, such as 10.0.0.0/8; also allows http (none)
    timeout  seconds that a request may take (15)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    secrets: tuple[SecretStr, ...] = Field(min_length=1, max_length=4)
    allow: tuple[str, ...] = ()
    timeout: Seconds = Field(default=15.0, gt=0, le=60)

    @field_validator("secrets")
    @classmethod
    def _are_keys(cls, given: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        for each in given:
            key_of(each.get_secret_value())
        return given

    @field_validator("allow")
    @classmethod
    def _are_networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for each in given:
            ipaddress.ip_network(each)
        return given

    @property
    def networks(self) -> list[Network]:
        """The networks of `allow`."""
        return [ipaddress.ip_network(each) for each in self.allow]

    @property
    def keys(self) -> list[bytes]:
        """The keys of `secrets`, with which requests are signed."""
        return [key_of(each.get_secret_value()) for each in self.secrets]
