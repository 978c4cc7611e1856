"""An outbox: a table in somebody's own database, whose rows become items of the platform's queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from ...foundation.config import Seconds
from ...model.errors import ConfigError, InvalidRequest
from ...sdk.source import Capabilities, SourceKind
from ...stores.outbox.outbox import Outbox
from ...stores.outbox.table import TABLE, quoted
from ..registry import Environment

_POSTGRES = ("postgresql://", "postgres://")


class OutboxOptions(BaseModel):
    """Options of an outbox: the place of its table, and the pace of reading it.

    database  postgresql://user@host:5432/database, or the path of an SQLite file
    user, password   win over those in the URL
    table     the table's name, perhaps with a schema and a dot before it
    batch     rows that are handed over at once (500: one commit of a few ms)
    poll      seconds between looks while there are no rows (1 s): the longest wait of a row
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    database: SecretStr
    user: str | None = None
    password: SecretStr | None = None
    table: str = TABLE
    batch: int = Field(500, ge=1, le=5000)
    poll: Seconds = Field(1.0, ge=0.01, le=3600)

    @field_validator("table")
    @classmethod
    def _is_a_table(cls, table: str) -> str:
        try:
            quoted(table)
        except InvalidRequest as error:
            raise ValueError(str(error)) from None
        return table

    @field_validator("database")
    @classmethod
    def _is_a_database(cls, database: SecretStr) -> SecretStr:
        value = database.get_secret_value()
        if not value or ("://" in value and not value.startswith(_POSTGRES)):
            raise ValueError("expected postgresql://USER@HOST:5432/DATABASE or the path of an SQLite file")
        return database


def outbox_of(options: OutboxOptions) -> Any:
    """The table that the options name. Raises ConfigError where its client library is not installed."""
    database = options.database.get_secret_value()
    if not database.startswith(_POSTGRES):
        from ...stores.outbox.sqlite import SqliteOutbox

        return SqliteOutbox(Path(database), options.table)
    try:
        from ...stores.outbox.postgres import PostgresOutbox
        from ...stores.postgres.server import PostgresOptions
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'an outbox in PostgreSQL needs the Python package "{error.name}", which is not installed: '
            "pip install 'tailrace[postgres]'"
        ) from error
    server = PostgresOptions(
        url=options.database, user=options.user, password=options.password, connections=2, notify=False
    )
    return PostgresOutbox(server, options.table)


def build(options: OutboxOptions, environment: Environment) -> Outbox:
    """The outbox, to be read by a RelayPump."""
    outbox: Outbox = outbox_of(options)
    return outbox


KIND = SourceKind(
    "outbox",
    "relay",
    OutboxOptions,
    build,
    Capabilities(rereads=False, renews=False, delays=False),
    description="rows that transactions left in a table of your own database",
)
