"""Words of a Redis server, in ours: what is wrong, and what to do; never the password."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from redis import exceptions

from tailrace.model.errors import NotConnected, StoreFull
from tailrace.stores.queue.redis.options import RedisQueueOptions
from tailrace.stores.redis.options import RedisOptions
from tailrace.stores.redis.server import explained
from tailrace.stores.state.redis_server import RedisStateOptions


@pytest.mark.parametrize(
    ("error", "instead", "words"),
    [
        (exceptions.AuthenticationError("WRONGPASS invalid username-password pair"), NotConnected, "password"),
        (exceptions.ResponseError("NOAUTH Authentication required."), NotConnected, "password"),
        (exceptions.NoPermissionError("this user has no permissions to run 'xrange'"), NotConnected, "ACL SETUSER"),
        (exceptions.ResponseError("The user executing the script can't run this command"), NotConnected, "ACL SETUSER"),
        (exceptions.ResponseError("WRONGTYPE Operation against a key"), NotConnected, "key of a stream"),
        (exceptions.OutOfMemoryError("command not allowed"), StoreFull, "maxmemory"),
        (exceptions.ResponseError("OOM command not allowed when used memory > 'maxmemory'."), StoreFull, "maxmemory"),
        (exceptions.ResponseError("MISCONF Redis is configured to save"), StoreFull, "disk"),
        (exceptions.MovedError("3999 127.0.0.1:6381"), NotConnected, "Cluster"),
        (exceptions.AskError("3999 127.0.0.1:6381"), NotConnected, "Cluster"),
        (exceptions.BusyLoadingError("Redis is loading the dataset"), NotConnected, "loading"),
        (exceptions.ReadOnlyError("You can't write against a read only replica."), NotConnected, "replica"),
        (exceptions.TimeoutError("Timeout reading from h:1"), NotConnected, "unknown"),
        (exceptions.ConnectionError("Error 111 connecting"), NotConnected, "cannot be reached: Error 111"),
        (ConnectionResetError(), NotConnected, "ConnectionResetError"),
        (RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed"), NotConnected, "lost"),
        (exceptions.ResponseError("ERR something new"), NotConnected, "ERR something new"),
    ],
)
def test_each_error_says_what_to_do(error: Exception, instead: type[Exception], words: str) -> None:
    told = explained(error, "Redis at h:1", "stream 'orders'")
    assert type(told) is instead
    assert words in str(told) and "h:1" in str(told)


def test_a_mistake_of_ours_is_no_lost_connection() -> None:
    with pytest.raises(RuntimeError, match="changed size"):
        explained(RuntimeError("dictionary changed size during iteration"), "Redis at h:1")


def test_messages_name_the_server_without_its_password() -> None:
    options = RedisOptions(url="redis://me:secret@example:7000/3", password="other")
    assert options.server == "Redis at example:7000"
    assert "secret" not in repr(options) and "other" not in repr(options)


@pytest.mark.parametrize("url", ["http://:hunter2@h", "redis://", "hunter2", "redis://h:port", "unix://", ""])
def test_a_url_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ValidationError, match="expected a URL such as") as refusal:
        RedisOptions(url=url)
    assert "hunter2" not in refusal.value.errors(include_input=False, include_url=False)[0]["msg"]


def test_files_for_tls_need_a_url_with_tls() -> None:
    with pytest.raises(ValidationError, match="rediss"):
        RedisOptions(url="redis://h", tls_ca="ca.pem")
    assert RedisOptions(url="rediss://h", tls_ca="ca.pem").tls_ca == "ca.pem"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("redis+sentinel://h:26379", r"redis\+sentinel://HOST:26379"),
        ("redis+sentinel://h:x/orders", r"redis\+sentinel://HOST:26379"),
        ("redis://h/0?sentinel_master=orders", r"'sentinel_master'.*redis\+sentinel://"),
        ("redis://h/0?socket_timeout=1", "'socket_timeout'.*`timeout`"),
        ("redis+sentinel://h/orders?protocol=3", "'protocol'"),
    ],
)
def test_a_url_that_cannot_be_is_refused_with_what_to_write(url: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        RedisOptions(url=url)


def test_sentinels_are_named_without_user_and_password() -> None:
    options = RedisOptions(url="redis+sentinel://user:secret@a,[::1]:26380/orders/3")
    assert options.server == "Redis 'orders' by Sentinel at a:26379,::1:26380"
    pool = options.client().connection_pool
    given = {name: pool.connection_kwargs[name] for name in ("username", "password", "db", "protocol")}
    assert given == {"username": "user", "password": "secret", "db": 3, "protocol": 2}


@pytest.mark.parametrize("more", [{"replicas": 1}, {"url": "redis+sentinel://h/orders"}])
def test_a_cluster_has_neither_sentinels_nor_replicas_to_wait_for(more: dict) -> None:
    for options in (RedisQueueOptions, RedisStateOptions):
        with pytest.raises(ValidationError, match="luster"):
            options(cluster=True, **more)
