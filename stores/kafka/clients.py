"""The client library that a configuration names."""

from __future__ import annotations

from ...model.errors import ConfigError
from .client import KafkaClient
from .options import KafkaOptions


def client_of(options: KafkaOptions) -> KafkaClient:
    """The library that the options name. Raises ConfigError when its extra is not installed."""
    try:
        if options.client == "confluent":
            from .confluent import ConfluentClient

            return ConfluentClient()
        from .python_looker import PythonClient

        return PythonClient()
    except ModuleNotFoundError as error:
        extra = "kafka-native" if options.client == "confluent" else "kafka"
        raise ConfigError(
            f'client "{options.client}" needs the Python package "{error.name}", which is not installed: '
            f"pip install 'tailrace[{extra}]'"
        ) from error
