"""The configuration of clients (`client.yaml`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ClientConfig(BaseModel):
    """`gateway` is host:port; left out, it is the one on this machine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gateway: str | None = None
