"""TLS, SASL and ACLs with both clients: a tailer with the rights comes in; one without is told so, with what to do, is
tried again with back-off, and goes on by itself when that is mended, with nothing lost."""

from __future__ import annotations

import gc
import uuid

import pytest

from tailrace.stores.kafka.options import KafkaOptions
from tailrace.stores.log.kafka import KafkaLog
from tailrace.stores.log.log import Record

#: kafka-python up to 3.0.12 at least leaves the socket of a handshake that failed to the garbage collector; so what it
#: left is collected before another test is blamed for it.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Exception ignored in. <ssl\.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)
CLIENTS = pytest.mark.parametrize("client", ["kafka-python", "confluent"])
LONG = pytest.mark.long(minutes=0.1)
COUNT = 3


@pytest.fixture
def name():
    return f"orders-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def tailer(guarded_kafka, start, scheduler, name):
    """Starts a tailer over a topic with records, reached in some way."""

    async def one(address, **keys):
        log = KafkaLog(KafkaOptions(bootstrap_servers=guarded_kafka.plain), prefix="")
        await log.append(name, 0, [Record(b"%d" % n) for n in range(COUNT)])
        await log.close()
        scheduler.allow("f")
        source = {"kind": "kafka", "bootstrap_servers": address, "topic": name, "group": name}
        return await start(0.5, source=source | {"session_timeout": "6s", "request_timeout": "2s"} | keys, function="f")

    yield one
    gc.collect()


def user(name="owner", mechanism="PLAIN", password=None):
    password = password or f"secret-of-{name}"
    return {"security": "sasl_plaintext", "username": name, "password": password, "mechanism": mechanism}


async def refused(one, eventually, *words):
    """Asserts that a tailer says why it is refused, and what to do, without its secret."""
    await eventually(lambda: all(word in one.overview().detail for word in words), 60)
    assert one.overview().state == "disconnected"
    assert "secret" not in one.overview().detail
    return one


async def read(one, eventually):
    await eventually(lambda: one.overview().settled == COUNT, 60)


@CLIENTS
async def test_over_tls_with_scram(guarded_kafka, tailer, eventually, client):
    keys = user(mechanism="SCRAM-SHA-512") | {"security": "sasl_ssl", "ca": guarded_kafka.file("ca")}
    await read(await tailer(guarded_kafka.tls, **keys, client=client), eventually)


@CLIENTS
async def test_credentials_that_are_refused(guarded_kafka, tailer, eventually, client):
    one = await tailer(guarded_kafka.sasl, **user(password="a-secret-that-is-wrong"), client=client)
    await refused(one, eventually, '"username", "password" and "mechanism"')


@CLIENTS
async def test_rights_that_are_missing_one_by_one(guarded_kafka, tailer, eventually, name, client):
    # Given a user without rights
    one = await tailer(guarded_kafka.sasl, **user("reader"), client=client)
    await refused(one, eventually, "grant the ACLs Read and Describe on it")
    # When the topic may be read, then the group is what is missing
    guarded_kafka.allow("reader", topic=name)
    await refused(one, eventually, "grant the ACL Read on it")
    # And when it may be used, then it reads
    guarded_kafka.allow("reader", group=name)
    await read(one, eventually)


@LONG
@CLIENTS
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_every_mechanism(guarded_kafka, tailer, eventually, mechanism, client):
    await read(await tailer(guarded_kafka.sasl, **user(mechanism=mechanism), client=client), eventually)


@LONG
@CLIENTS
async def test_a_certificate_of_ones_own(guarded_kafka, tailer, eventually, client):
    files = {name: guarded_kafka.file(name) for name in ("ca", "certificate", "key")}
    await read(await tailer(guarded_kafka.mutual, security="ssl", **files, client=client), eventually)


@LONG
@CLIENTS
async def test_no_certificate_where_one_is_asked_for(guarded_kafka, tailer, eventually, client):
    one = await tailer(guarded_kafka.mutual, security="ssl", ca=guarded_kafka.file("ca"), client=client)
    await refused(one, eventually, '"certificate"')


@LONG
@CLIENTS
async def test_an_authority_that_is_not_the_brokers(guarded_kafka, tailer, eventually, client):
    keys = user(mechanism="SCRAM-SHA-512") | {"security": "sasl_ssl", "ca": guarded_kafka.file("stranger")}
    await refused(await tailer(guarded_kafka.tls, **keys, client=client), eventually, '"ca"')


@LONG
@CLIENTS
async def test_a_broker_of_another_name(guarded_kafka, tailer, eventually, client):
    # Given a certificate that names 127.0.0.1, of a broker that is asked for as localhost
    keys = user(mechanism="SCRAM-SHA-512") | {"security": "sasl_ssl", "ca": guarded_kafka.file("ca")}
    address = guarded_kafka.tls.replace("127.0.0.1", "localhost")
    await refused(await tailer(address, **keys, client=client), eventually, '"check_hostname"')


@LONG
@CLIENTS
async def test_any_name_where_the_file_says_so(guarded_kafka, tailer, eventually, client):
    keys = user(mechanism="SCRAM-SHA-512") | {"security": "sasl_ssl", "ca": guarded_kafka.file("ca")}
    address = guarded_kafka.tls.replace("127.0.0.1", "localhost")
    await read(await tailer(address, **keys, check_hostname=False, client=client), eventually)


@LONG
@CLIENTS
async def test_plain_text_to_a_port_of_tls(guarded_kafka, tailer, eventually, client):
    await refused(await tailer(guarded_kafka.tls, client=client), eventually, '"security"')


@LONG
@CLIENTS
async def test_tls_to_a_port_of_plain_text(guarded_kafka, tailer, eventually, client):
    keys = {"security": "ssl", "ca": guarded_kafka.file("ca")}
    await refused(await tailer(guarded_kafka.plain, **keys, client=client), eventually, '"security"')


@LONG
@CLIENTS
async def test_a_mechanism_that_the_broker_does_not_offer(guarded_kafka, tailer, eventually, client):
    keys = user(mechanism="SCRAM-SHA-256") | {"security": "sasl_ssl", "ca": guarded_kafka.file("ca")}
    await refused(await tailer(guarded_kafka.tls, **keys, client=client), eventually, '"mechanism"')


@LONG
@CLIENTS
async def test_a_password_that_is_mended_at_the_broker(guarded_kafka, tailer, eventually, client):
    # Given a user whose password at the broker is another one
    name, password = f"late-{uuid.uuid4().hex[:6]}", "the-new-secret"
    guarded_kafka.set_password(name, "the-old-secret")
    guarded_kafka.allow(name, topic="*", group="*")
    keys = user(name, "SCRAM-SHA-256", password)
    one = await refused(await tailer(guarded_kafka.sasl, **keys, client=client), eventually, '"password"')
    # When it is set there, then the tailer reads
    guarded_kafka.set_password(name, password)
    await read(one, eventually)


@LONG
@CLIENTS
async def test_a_file_that_is_not_there(guarded_kafka, tailer, eventually, client):
    keys = {"security": "ssl", "ca": "/nowhere/ca.pem", "client": client}
    await refused(await tailer(guarded_kafka.tls, **keys), eventually, "/nowhere/ca.pem")
