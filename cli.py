"""The `tailrace` command: the tree of commands, and its end by errors. Each folder's commands are in its `commands`.

Thin and quick: modules that load gRPC, pydantic or YAML are imported by the command that needs them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Annotated, Any

from .foundation import early_end  # noqa: F401 - it listens from here on

# isort: split
import typer
from typer.core import TyperGroup

from . import __version__
from .assembly.planning import quota_plan
from .assembly.store_commands import DEFAULT_DATA, Config, Data, Listen, store
from .bench.commands import bench
from .demo.commands import demo
from .foundation import terminal
from .gateway.commands.acts import acts
from .gateway.commands.alerts import alerts, queue
from .gateway.commands.auth import auth
from .gateway.commands.files import reload
from .gateway.commands.gates import function, gate
from .gateway.commands.health import health
from .gateway.commands.items import peek, reschedule
from .gateway.commands.jobs import job
from .gateway.commands.letters import dead
from .gateway.commands.quotas import quota
from .gateway.commands.schedules import schedule
from .gateway.commands.usage import usage
from .gateway.commands.workloads import cancel, find, result, status, submit
from .model.address import DEFAULT_DELAY, DEFAULT_STORE, checked_address
from .model.errors import TailraceError
from .scheduler.commands import explain, inspect, record
from .tailers.commands.audit import audit
from .tailers.commands.outbox import outbox
from .tailers.commands.replay import replay
from .tailers.commands.tailers import tailer
from .testing.simulation.commands import simulate

TRY = """Five things to try:

  tailrace demo                            half a minute of real work, with a live view
  tailrace up --functions tasks.py         the whole platform here, with your functions
  tailrace submit greet name=Ann           one workload for a function
  tailrace status ID; tailrace explain ID  where it is, and why it is not running
  tailrace tailer validate orders.yaml     is this tailer's file right?

tailrace --help lists every command."""

#: Plain words for the types of options, by typer's words.
TYPE_WORDS = {"int": "whole number", "int range": "whole number", "float": "number", "float range": "number"}


class PlainGroup(TyperGroup):
    """A group of commands whose help and messages name the types of options in plain words."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        _name_types(self)


def _name_types(command: Any) -> None:
    for parameter in command.params:
        parameter.type.name = TYPE_WORDS.get(parameter.type.name, parameter.type.name)
    for below in getattr(command, "commands", {}).values():
        _name_types(below)


app = typer.Typer(
    name="tailrace",
    cls=PlainGroup,
    help="Runs your functions on work that already rests somewhere: a queue, a stream, a folder.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)

PARTS = "The platform and its parts"
WORK = "Workloads"
OPERATE = "Operating"


def _store_address(given: str | None) -> str | None:
    """Refuses a text that is no address, since nobody would ever answer there."""
    return None if given is None else checked_address(given, "--store (TAILRACE_STORE)", DEFAULT_STORE)


def _delay_address(given: str | None) -> str | None:
    return None if given is None else checked_address(given, "--delay (TAILRACE_DELAY)", DEFAULT_DELAY)


StoreAddress = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="HOST:PORT",
        envvar="TAILRACE_STORE",
        callback=_store_address,
        help=f"Address of a `tailrace store serve`; default: that of --config, else {DEFAULT_STORE}.",
    ),
]
DelayAddress = Annotated[
    str | None,
    typer.Option(
        "--delay",
        metavar="HOST:PORT",
        envvar="TAILRACE_DELAY",
        callback=_delay_address,
        help=f"Address of a `tailrace delay`; default: that of --config, else {DEFAULT_DELAY}.",
    ),
]
_SCHEDULER = (
    "Address of a scheduler; default: TAILRACE_SCHEDULER, else that of --config, else 127.0.0.1:8788 or your scheduler "
    "that runs here"
)
Schedulers = Annotated[
    list[str] | None, typer.Option("--scheduler", metavar="HOST:PORT", help=f"{_SCHEDULER}. May be repeated.")
]
Functions = Annotated[
    list[str] | None,
    typer.Option("--functions", "-f", metavar="MODULE", help="A module or file with functions; may be repeated."),
]
Watch = Annotated[bool, typer.Option("--watch", help="Watch the files, and read changed ones again.")]
DEFAULT_GATEWAY_DATA = Path(".tailrace/gateway")


def _told(version: bool) -> None:
    """Shows the versions of tailrace and Python, with which a report of a defect begins."""
    if version:
        terminal.say(f"tailrace {__version__} on Python {sys.version.split()[0]}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_told, is_eager=True, help="Show the versions of tailrace and Python."),
    ] = False,
) -> None:
    """Runs your functions on work that already rests somewhere: a queue, a stream, a folder."""
    if debug:
        os.environ["TAILRACE_DEBUG"] = "1"
    if context.invoked_subcommand is None:
        terminal.say(TRY)


@app.command(rich_help_panel=PARTS)
def up(
    modules: Annotated[
        list[str] | None, typer.Argument(metavar="MODULE…", help="Modules or files with functions, like --functions.")
    ] = None,
    functions: Functions = None,
    config: Config = None,
    data: Data = DEFAULT_DATA,
    watch: Watch = False,
    json: terminal.Json = False,
) -> None:
    """Run the whole platform here: stores, gateway, tailers, delay service, scheduler, worker."""
    from .assembly.foreground import run_up

    raise typer.Exit(run_up([*(modules or []), *(functions or [])], config, data, json, watch))


@app.command(rich_help_panel=PARTS)
def node(
    scheduler: Annotated[str | None, typer.Option("--scheduler", metavar="HOST:PORT", help=f"{_SCHEDULER}.")] = None,
    config: Config = None,
    data: Data = DEFAULT_DATA,
    tailers: Annotated[
        list[Path] | None,
        typer.Option(
            "--tailers",
            metavar="FILE",
            help="A further tailer file, or a folder of such files; may be repeated.",
        ),
    ] = None,
    watch: Watch = False,
) -> None:
    """Run a node: stores, gateway, delay service and tailers in one process; scheduler and workers run apart."""
    from .assembly import foreground, parts
    from .assembly.files import addresses, read_all, scheduler_for
    from .assembly.settings import ConfigDirectory

    ports = addresses(read_all(ConfigDirectory(config)))
    settings = parts.NodeSettings(
        config=config,
        data=data,
        scheduler=scheduler_for(scheduler, config),
        gateway=ports["gateway"],
        store=ports["store"],
        delay=ports["delay"],
        tailers=tuple(tailers or ()),
        watch=watch,
    )
    raise typer.Exit(foreground.run_part(settings))


@app.command(rich_help_panel=PARTS)
def scheduler(
    listen: Listen = None,
    gateway: terminal.GatewayAddress = None,
    no_gateway: Annotated[bool, typer.Option("--no-gateway", help="Run without gates and quotas.")] = False,
    config: Config = None,
) -> None:
    """Run a scheduler. It takes gates and quotas from the gateway, and admits nothing before it has them."""
    from .assembly import foreground, parts
    from .assembly.files import gateway_for

    found = None if no_gateway else gateway_for(gateway, config)
    raise typer.Exit(foreground.run_part(parts.SchedulerSettings(config=config, listen=listen, gateway=found)))


@app.command(rich_help_panel=PARTS)
def worker(
    modules: Annotated[list[str], typer.Argument(metavar="MODULE…", help="Modules or files with functions.")],
    scheduler: Schedulers = None,
    gateway: terminal.GatewayAddress = None,
    config: Config = None,
) -> None:
    """Run a worker, which runs the functions of these modules."""
    from .assembly import foreground, parts
    from .assembly.files import gateway_for, scheduler_for

    schedulers = tuple(scheduler_for(each, config) for each in scheduler or [""])
    settings = parts.WorkerSettings(
        config=config, modules=tuple(modules), schedulers=schedulers, gateway=gateway_for(gateway, config)
    )
    raise typer.Exit(foreground.run_part(settings))


@app.command(rich_help_panel=PARTS)
def delay(listen: Listen = None, store: StoreAddress = None, config: Config = None) -> None:
    """Run the delay service, which keeps failed stream items until they are due."""
    from .assembly import foreground, parts
    from .assembly.files import store_for

    settings = parts.DelaySettings(config=config, listen=listen, store=store_for(store, config))
    raise typer.Exit(foreground.run_part(settings))


@app.command(rich_help_panel=PARTS)
def gateway(
    listen: Listen = None,
    store: StoreAddress = None,
    config: Config = None,
    data: Annotated[
        Path,
        typer.Option(
            "--data",
            metavar="DIR",
            envvar="TAILRACE_GATEWAY_DATA",
            help="Folder that keeps submissions while the store is away (spool); each gateway has its own.",
        ),
    ] = DEFAULT_GATEWAY_DATA,
) -> None:
    """Run a gateway: submission, status, results, gates and quotas."""
    from .assembly import foreground, parts
    from .assembly.files import store_for

    settings = parts.GatewaySettings(config=config, listen=listen, store=store_for(store, config), data=data)
    raise typer.Exit(foreground.run_part(settings))


@tailer.command("run")
def tailer_run(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Tailer files, or folders of such files.")],
    scheduler: Annotated[str | None, typer.Option("--scheduler", metavar="HOST:PORT", help=f"{_SCHEDULER}.")] = None,
    delay: DelayAddress = None,
    store: StoreAddress = None,
    config: Config = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="HOST:PORT", help="Answer health checks here; default: nowhere.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option("--metrics", metavar="HOST:PORT", help="Answer GET /metrics here; default: nowhere.")
    ] = None,
    watch: Watch = False,
) -> None:
    """Run tailers in this process."""
    from .assembly import foreground, parts
    from .assembly.files import delay_for, scheduler_for, store_for

    settings = parts.TailersSettings(
        config=config,
        files=tuple(files),
        scheduler=scheduler_for(scheduler, config),
        delay=delay_for(delay, config),
        store=store_for(store, config),
        listen=listen,
        metrics=metrics,
        watch=watch,
    )
    raise typer.Exit(foreground.run_part(settings))


@app.command(rich_help_panel=OPERATE)
def metrics(
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Answer GET /metrics here until a signal; default: print."),
    ] = None,
    gateway: terminal.GatewayAddress = None,
    json: terminal.Json = False,
) -> None:
    """Show the platform's metrics in Prometheus' text format, or serve them to scrapers."""
    from .gateway.commands.metrics import show_metrics

    if listen is None:
        show_metrics(gateway, json)
        return
    from .assembly import foreground, parts
    from .sdk.discovery import find_gateway

    raise typer.Exit(foreground.run_part(parts.MetricsSettings(listen=listen, gateway=find_gateway(gateway))))


@app.command(rich_help_panel=OPERATE)
def version(json: terminal.Json = False) -> None:
    """Show the version of tailrace, of Python and of gRPC."""
    from importlib.metadata import version as version_of

    import tailrace

    facts = {"tailrace": tailrace.__version__, "python": sys.version.split()[0], "grpcio": version_of("grpcio")}
    terminal.show_facts(facts, json)


# The tree, in the order in which --help shows it.
quota.command("plan")(quota_plan)
for part in (demo, health):
    app.command(rich_help_panel=PARTS)(part)
for work in (submit, status, result, find, peek, reschedule, cancel, explain):
    app.command(rich_help_panel=WORK)(work)
for operation in (alerts, queue, inspect, usage, record, audit, acts, reload, bench, simulate):
    app.command(rich_help_panel=OPERATE)(operation)
for name, group in (
    ("function", function),
    ("tailer", tailer),
    ("gate", gate),
    ("quota", quota),
    ("dead", dead),
    ("replay", replay),
    ("outbox", outbox),
    ("schedule", schedule),
    ("job", job),
    ("store", store),
    ("auth", auth),
):
    app.add_typer(group, name=name, rich_help_panel=OPERATE)


def tree(words: Sequence[str]) -> typer.Typer:
    """The tree of commands for a line of words. Its first level has only the command that the first word names, since
    typer looks at every function of a tree, a tenth of a short command. All of it is there for help, options and
    mistakes."""
    first = words[0] if words else ""
    commands = [each for each in app.registered_commands if each.callback and each.callback.__name__ == first]
    groups = [each for each in app.registered_groups if each.name == first]
    if len(commands) + len(groups) != 1:
        return app
    branch = copy(app)
    branch.registered_commands, branch.registered_groups = commands, groups
    return branch


def main() -> None:
    """Runs the command line. A TailraceError is one message on standard error; with --debug, its traceback too."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # gRPC's own log would repeat the error's one message
    try:
        tree(sys.argv[1:])()
    except TailraceError as error:
        if os.environ.get("TAILRACE_DEBUG"):
            raise
        terminal.complain(terminal.explain(error))
        sys.exit(terminal.exit_code(error))
    except TimeoutError as error:
        terminal.complain(f"tailrace: {error}")
        sys.exit(terminal.FAILED)
    except BrokenPipeError:  # `tailrace dead list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(terminal.FAILED)


if __name__ == "__main__":
    if not sys.flags.safe_path:  # `python -m` puts the folder first in which it is started
        sys.path.append(sys.path.pop(0))
    main()
