"""The configuration of clients (`client.yaml`)."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from .discovery import DEFAULT_GATEWAY


class ClientConfig(BaseModel):
    """`gateway` is host:port (default 127.0.0.1:8786)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gateway: str = DEFAULT_GATEWAY
