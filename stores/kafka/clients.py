"""The client library that a configuration names."""

from __future__ import annotations

from importlib.util import find_spec

from ...model.errors import ConfigError
from .client import KafkaClient
from .options import KafkaOptions

#: The package that each library is imported as, and the extra that brings it.
_BROUGHT_BY = {"kafka-python": ("kafka", "kafka"), "confluent": ("confluent_kafka", "kafka-native")}


def lacking(client: str) -> str:
    """A message about the package to install before this library can be used; empty: it is installed. The library is
    not imported for that."""
    package, _ = _BROUGHT_BY[client]
    return "" if find_spec(package) else _needed(client, package)


def _needed(client: str, package: str | None) -> str:
    return (
        f'client "{client}" needs the Python package "{package}", which is not installed: '
        f"pip install 'tailrace[{_BROUGHT_BY[client][1]}]'"
    )


def client_of(options: KafkaOptions) -> KafkaClient:
    """The client library that the options name. Raises ConfigError when its extra is not installed."""
    try:
        if options.client == "confluent":
            from .confluent_reader import ConfluentClient

            return ConfluentClient()
        from .python_admin import PythonClient

        return PythonClient()
    except ModuleNotFoundError as error:
        raise ConfigError(_needed(options.client, error.name)) from error
