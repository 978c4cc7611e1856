"""Errors of Kafka clients in the words of our own errors, with advice for each.

Both clients name errors after the codes of the protocol, each in its own spelling; they are compared here without
underscores.
"""

from __future__ import annotations

import re

from ...model.errors import NotConnected, TailraceError

HANGS_UP = (
    'the server there hangs up: it may be starting or ending; else look at "security" (does the port expect TLS, or a '
    'user?), "username", "password" and "mechanism"'
)
CODEC = (
    "a record is compressed in a way that this client cannot read: install its codec (python-snappy, lz4 or zstandard) "
    'and start again, or take "client: confluent", which has all of them'
)
#: A part of an error's name or text, and the advice for it. The first one that fits counts.
HINTS: tuple[tuple[str, str], ...] = (
    ("topicauthorization", "the user may not do this with the topic: grant the ACLs Read and Describe on it"),
    ("groupauthorization", "the user may not use the group: grant the ACL Read on it"),
    ("clusterauthorization", "the user may not do this: grant the ACL on the cluster"),
    ("transactionalidauthorization", "the user may not do this: grant the ACL on the transactional id"),
    ("unsupportedsaslmechanism", 'the broker does not offer this mechanism: look at "mechanism"'),
    ("authenticationfailed", 'the broker refuses the credentials: look at "username", "password" and "mechanism"'),
    ("authentication", 'the broker refuses the credentials: look at "username", "password" and "mechanism"'),
    ("plaintextbrokerlistener", 'the port does not speak TLS: look at "security"'),
    ("unexpectedeof", 'the port does not speak TLS: look at "security"'),
    ("wrongversionnumber", 'the port does not speak TLS: look at "security"'),
    ("sslerror", 'TLS failed: look at "ca", "certificate", "key" and "check_hostname"'),
    ("certificate", 'TLS failed: look at "ca", "certificate", "key" and "check_hostname"'),
    ("unknowntopic", "the topic does not exist there (yet): create it, or mend its name"),
    (
        "inconsistentgroupprotocol",
        "the group's name is in use by another application, which hands out partitions in its own way: "
        "take another group",
    ),
    (
        "fencedinstanceid",
        'another member has the same group_instance_id: give each process its own "group_instance_id"',
    ),
    ("unsupportedcompression", CODEC),
    ("unsupportedcodec", CODEC),
    ("libraries for", CODEC),
    (
        "invalidtimestamp",
        "the clock here is too far ahead of the broker's for this topic: set its message.timestamp.after.max.ms to "
        "9223372036854775807 (topics that tailrace makes now have that), or mend the clock",
    ),
    ("messagesizetoolarge", "a record is larger than the topic allows: raise its max.message.bytes"),
    ("recordtoolarge", "a record is larger than the topic allows: raise its max.message.bytes"),
    ("notenoughreplicas", "fewer replicas are in sync than the topic demands: bring brokers back"),
    ("invalidsessiontimeout", "the broker does not allow this session_timeout: see group.min.session.timeout.ms there"),
    ("hangsup", HANGS_UP),
    ("socketdisconnected", HANGS_UP),
    ("unabletobootstrap", "no broker answers: look at bootstrap_servers, and whether they run"),
    ("nobrokersavailable", "no broker answers: look at bootstrap_servers, and whether they run"),
    ("bootstrap", "no broker answers: look at bootstrap_servers, and whether they run"),
    ("allbrokersdown", "no broker answers: look at bootstrap_servers, and whether they run"),
    ("nodenotready", "no broker answers: look at bootstrap_servers, and whether they run"),
    ("transport", "no broker answers: look at bootstrap_servers, and whether they run"),
)


def explained(where: str, error: BaseException) -> str:
    """The error in one line, with advice where there is some. `where` names the cluster."""
    name = type(error).__name__
    text = str(error).strip() or name
    if name not in text and name not in ("KafkaException", "KafkaError"):
        text = f"{name}: {text}"
    flat = re.sub(r"[_\s]", "", f"{name} {text}").lower()
    hint = next((hint for part, hint in HINTS if part.replace(" ", "") in flat), "")
    return f"{where}: {text}" + (f"; {hint}" if hint else "")


def unavailable(where: str, error: BaseException) -> TailraceError:
    """The error as a NotConnected, which callers retry. An error of ours stays as it is."""
    return error if isinstance(error, TailraceError) else NotConnected(explained(where, error))
