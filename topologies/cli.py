# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold fabric list`, `check`, `show` and `schema`, and helpers shared by the commands on networks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.table import Table

from netfold.topologies.address_assignment import numbered
from netfold.topologies.addressing import addresses
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.spec import load_fabric, schema_text, spec_names

P = ParamSpec("P")

FAILED, BAD_INPUT = 1, 2
"""Exit codes of an error of the system, and of a bad fabric or option."""

listed, check, show, schema = (typer.Typer() for _ in range(4))
"""Commands of `netfold fabric` that read a file; controller/operator/fabric_commands.py has those of a controller."""

# protocol/options.py has it, too: commands of a job start without the libraries of fabrics.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
FabricArgument = Annotated[
    str, typer.Argument(metavar="FABRIC", help="YAML file of a fabric, or name of one of netfold.")
]


def one_line_errors(*kinds: type[Exception]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Prints an error in one line. Exit codes: FAILED for these kinds, BAD_INPUT for fabrics."""

    def decorate(function: Callable[P, None]) -> Callable[P, None]:
        @wraps(function)
        def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                function(*args, **kwargs)
            except FabricError as error:
                fail(str(error), BAD_INPUT)
            except kinds as error:
                fail(str(error), FAILED)
            except BrokenPipeError:
                sys.stderr.close()  # the reader closed the pipe, as `head` does: no message at exit
                raise typer.Exit(FAILED) from None

        return wrapped

    return decorate


def fail(message: str, code: int) -> NoReturn:
    """Prints the message in one line and exits."""
    typer.echo(f"netfold: {message}", err=True)
    raise typer.Exit(code)


def new_table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    return table


@listed.command()
def _list() -> None:
    """List the specs that come with netfold."""
    for spec in spec_names():
        typer.echo(spec)


@check.command()
@one_line_errors()
def _check(fabric: FabricArgument) -> None:
    """Check a spec; print each error with its line.

    Exit codes: 0 no error, 2 bad fabric."""
    found = load_fabric(fabric)
    addresses(found)
    typer.echo(_summary(found))


@show.command()
@one_line_errors()
def _show(fabric: FabricArgument, as_json: AsJson = False) -> None:
    """Show hosts, switches and links of a fabric with their addresses."""
    found = load_fabric(fabric)
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=1, default=str))
        return
    console = Console()
    console.print(_summary(found))
    for table in (_host_table(found), _switch_table(found), _link_table(found)):
        console.print(table)


@schema.command()
def _schema() -> None:
    """Print the JSON Schema of spec files, for editors."""
    typer.echo(schema_text(), nl=False)


def _summary(f: Fabric) -> str:
    sizes = f"{len(f.hosts)} hosts, {len(f.switches)} switches, {len(f.links)} links"
    return f"{f.name}: {sizes}; rates in {f.unit.name}"


def _as_json(f: Fabric) -> dict[str, Any]:
    a = addresses(f)
    f = numbered(f)
    return {
        "name": f.name,
        "unit": asdict(f.unit),
        "hosts": [{**asdict(h), "at": f.attachment(h.name), "mac": a.hosts[h.name].mac} for h in f.hosts],
        "switches": [{**asdict(s), "grpc_port": a.switches[s.name].grpc_port} for s in f.switches],
        "links": [{**asdict(x), "ports": [f.ports[x.a][x.b], f.ports[x.b][x.a]]} for x in f.links],
    }


def _host_table(f: Fabric) -> Table:
    a = addresses(f)
    table = new_table("hosts", "name", "at", "port", "IPv4", "MAC", "takes in")
    for h in f.hosts:
        x = a.hosts[h.name]
        server = f"{f.ingress_capacity(h.name):g}" if h.parameter_server else ""
        table.add_row(h.name, x.switch, str(x.port), str(x.ip), x.mac, server)
    return table


def _switch_table(f: Fabric) -> Table:
    a = addresses(f)
    table = new_table("switches", "name", "role", "aggregates", "slots", "loopback", "P4Runtime")
    for s in f.switches:
        x = a.switches[s.name]
        table.add_row(s.name, s.role, f"{s.capacity:g}", str(s.slots), str(x.loopback), x.grpc_address)
    return table


def _link_table(f: Fabric) -> Table:
    table = new_table("links", "ends", "ports", "rate", "queue", "delay ms")
    for x in f.links:
        ports = f"{f.ports[x.a][x.b]} {f.ports[x.b][x.a]}"
        table.add_row(f"{x.a}-{x.b}", ports, f"{x.rate:g}", str(x.queue), f"{x.delay_ms:g}")
    return table
