"""The choice of a client library for a member, by its options."""

from __future__ import annotations

from ...model.errors import ConfigError
from .kafka_member import Member, MemberOptions


def member_of(options: MemberOptions, name: str) -> Member:
    """A member that joins its group under this name. May block for the request timeout. Raises ConfigError when the
    client's extra is not installed."""
    try:
        if options.client == "confluent":
            from .kafka_confluent_member import ConfluentMember

            return ConfluentMember(options, name)
        from .kafka_python_member import PythonMember

        return PythonMember(options, name)
    except ModuleNotFoundError as error:
        raise ConfigError(f'client "{options.client}": the Python package "{error.name}" is not installed') from error
