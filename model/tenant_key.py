"""Keys of tenants: THE rule of how a key is one tenant's own, so that no tenant meets another's by the same text."""

from __future__ import annotations

from collections.abc import Callable

#: A character that stands before and behind the tenant in the key as it is kept. No name of a tenant has one.
MARK = "\x1f"

#: A tenant and a key → the key as it is kept.
KeyRule = Callable[[str, str], str]


def tenant_key(tenant: str, key: str) -> str:
    """The key as it is kept where it has to be unique. Without a tenant it is the key itself, unless that begins as
    those of tenants do; no two ⟨tenant, key⟩ have the same one."""
    return f"{MARK}{tenant}{MARK}{key}" if tenant or key.startswith(MARK) else key


def shared_key(tenant: str, key: str) -> str:
    """The key as it is kept where tenants share theirs (`shared_keys`)."""
    return key


def plain_key(kept: str) -> str:
    """The key as its submitter gave it; the inverse of `tenant_key`."""
    return kept[1:].partition(MARK)[2] if kept.startswith(MARK) and MARK in kept[1:] else kept
