"""The configuration of clients (`client.yaml`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator


class ClientConfig(BaseModel):
    """The gateways of a client.

    gateway   host:port (default: the gateway on this machine)
    gateways  several of one store, instead of `gateway`: a call that one does not answer is made to the next
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    gateway: str | None = None
    gateways: list[str] = Field(default=[], max_length=16)

    @model_validator(mode="after")
    def _one_of_them(self) -> ClientConfig:
        if self.gateway is not None and self.gateways:
            raise ValueError("gateway and gateways are both given: keep one of them")
        return self
