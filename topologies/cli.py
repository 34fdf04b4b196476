# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold up`, `down`, `status`, `exec`, `shell`, `pcap` and `fabric`: networks and fabrics from the
command line."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.table import Table

from netfold.topologies.addressing import FIRST_GRPC_PORT, addresses
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.network import keeper
from netfold.topologies.network.caller import become_root, caller
from netfold.topologies.network.errors import NetworkError
from netfold.topologies.network.state import DEFAULT_NAME, RUN_VARIABLE, RunDirectory, State, processes_of
from netfold.topologies.network.tools import tool
from netfold.topologies.spec import load_fabric, schema_text, spec_names

P = ParamSpec("P")

up = typer.Typer()
down = typer.Typer()
status = typer.Typer()
execute = typer.Typer()
shell = typer.Typer()
pcap = typer.Typer()
fabric = typer.Typer(no_args_is_help=True, help="Look at fabrics.")

_PASS_ON = {"ignore_unknown_options": True, "allow_interspersed_args": False}

SpecArgument = Annotated[
    str, typer.Argument(metavar="SPEC", help="a spec file, or the name of one of netfold's")
]
NameOption = Annotated[str, typer.Option("--name", help="of the network, 1 to 6 small letters")]


def one_line_errors(function: Callable[P, None]) -> Callable[P, None]:
    """What is wrong, on one line each and with exit code 1, in place of a traceback."""

    @wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            function(*args, **kwargs)
        except (FabricError, NetworkError) as error:
            fail(str(error))
        except BrokenPipeError:
            sys.stderr.close()  # the reader went away, as `head` does: no complaint at exit
            raise typer.Exit(1) from None

    return wrapped


def fail(message: str) -> NoReturn:
    typer.echo(f"netfold: {message}", err=True)
    raise typer.Exit(1)


@up.command()
@one_line_errors
def _up(
    spec: SpecArgument,
    target: Annotated[str, typer.Option(help="softswitch, bmv2, or auto: softswitch if it can run")] = "auto",
    scale: Annotated[float | None, typer.Option(help="rates on the wire are the fabric's times this")] = None,
    pcap_dir: Annotated[
        Path | None, typer.Option("--pcap", metavar="DIR", help="record what passes each switch port")
    ] = None,
    arp: Annotated[
        str, typer.Option(help="static: hosts know their gateway; fabric: they ask for it")
    ] = "static",
    first_grpc_port: Annotated[
        int, typer.Option(help="P4Runtime port of the first switch")
    ] = FIRST_GRPC_PORT,
    foreground: Annotated[bool, typer.Option("--foreground", help="stay until Ctrl-C")] = False,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Bring a fabric up as a Mininet network. Switches wait for a controller at their P4Runtime ports."""
    chosen = load_fabric(spec)
    become_root()
    if arp not in ("static", "fabric"):
        fail(f"--arp is '{arp}'; it must be static or fabric")
    options: dict[str, Any] = {
        "target": target,
        "scale": scale,
        "pcap_dir": pcap_dir,
        "arp": arp,
        "name": name,
        "first_grpc_port": first_grpc_port,
    }
    if foreground:
        keeper.hold(chosen, options, on_ready=lambda: _print_state(RunDirectory(name).up()))
        return
    keeper.start(chosen, options)
    _print_state(RunDirectory(name).up())


@down.command()
@one_line_errors
def _down(name: NameOption = DEFAULT_NAME) -> None:
    """Take the network down, or remove what a crashed one has left."""
    become_root()
    typer.echo(keeper.stop(RunDirectory(name)))


@status.command()
@one_line_errors
def _status(
    as_json: Annotated[bool, typer.Option("--json")] = False,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Show the network that is up."""
    become_root()
    state = RunDirectory(name).up()
    if as_json:
        typer.echo(json.dumps(asdict(state), indent=1))
    else:
        _print_state(state)


@execute.command(context_settings=_PASS_ON)
@one_line_errors
def _exec(
    host: Annotated[str, typer.Argument(metavar="HOST")],
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...")],
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Run a command in a host of the network; its exit code is this one's."""
    become_root()
    state = RunDirectory(name).up()
    environment = {**os.environ, RUN_VARIABLE: state.run}
    os.execve(tool("mnexec"), ["mnexec", "-a", str(state.host(host).pid), *command], environment)


@shell.command()
@one_line_errors
def _shell(
    switch: Annotated[str, typer.Argument(metavar="SWITCH")],
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Open p4runtime-shell on a switch. It only reads while a controller is primary."""
    become_root()
    found = RunDirectory(name).up().switch(switch)
    python = Path(sys.prefix).parent / ".venv-p4rt-shell" / "bin" / "python"
    if not python.exists():
        raise NetworkError("p4runtime-shell is not installed; `make shell-env` puts it there")
    command = [str(python), "-m", "p4runtime_sh", "--grpc-addr", found.grpc_address]
    os.execv(python, [*command, "--device-id", str(found.device_id), "--election-id", "0,1"])


@pcap.command()
@one_line_errors
def _pcap(
    link: Annotated[str, typer.Argument(metavar="LINK", help="its ends, as in leaf1-spine1")],
    file: Annotated[
        Path | None, typer.Option("--write", "-w", help="a pcap file; else packets are printed")
    ] = None,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Watch both directions of a link with tcpdump."""
    become_root()
    interface = RunDirectory(name).up().link(link).outside
    who = caller()
    writer = (who.name if who is not None else None) or "root"  # whose the file is
    output = ["-l"] if file is None else ["-U", "-Z", writer, "-w", str(file)]
    os.execv(tool("tcpdump"), ["tcpdump", "-n", "--immediate-mode", "-i", interface, *output])


@fabric.command("list")
def _list() -> None:
    """The specs that come with netfold."""
    for spec in spec_names():
        typer.echo(spec)


@fabric.command("check")
@one_line_errors
def _check(spec: SpecArgument) -> None:
    """Say whether a spec is right, and if not, what is wrong where."""
    found = load_fabric(spec)
    addresses(found)
    typer.echo(_summary(found))


@fabric.command("show")
@one_line_errors
def _show(spec: SpecArgument, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """Hosts, switches and links of a fabric, with the addresses that they get."""
    found = load_fabric(spec)
    if as_json:
        typer.echo(json.dumps(_as_json(found), indent=1))
        return
    console = Console()
    console.print(_summary(found))
    for table in (_host_table(found), _switch_table(found), _link_table(found)):
        console.print(table)


@fabric.command("schema")
def _schema() -> None:
    """The JSON Schema of spec files, for editors."""
    typer.echo(schema_text(), nl=False)


def _summary(f: Fabric) -> str:
    sizes = f"{len(f.hosts)} hosts, {len(f.switches)} switches, {len(f.links)} links"
    return f"{f.name}: {sizes}; rates in {f.unit.name}"


def _as_json(f: Fabric) -> dict[str, Any]:
    a = addresses(f)
    return {
        "name": f.name,
        "unit": asdict(f.unit),
        "hosts": [
            {**asdict(h), "at": f.attachment(h.name), "ip": str(a.ip(h.name)), "mac": a.hosts[h.name].mac}
            for h in f.hosts
        ],
        "switches": [
            {**asdict(s), "loopback": str(a.ip(s.name)), "grpc_port": a.switches[s.name].grpc_port}
            for s in f.switches
        ],
        "links": [{**asdict(x), "ports": [f.ports[x.a][x.b], f.ports[x.b][x.a]]} for x in f.links],
    }


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    return table


def _host_table(f: Fabric) -> Table:
    a = addresses(f)
    table = _table("hosts", "name", "at", "port", "IPv4", "MAC", "takes in")
    for h in f.hosts:
        x = a.hosts[h.name]
        server = f"{f.ingress_capacity(h.name):g}" if h.parameter_server else ""
        table.add_row(h.name, x.switch, str(x.port), str(x.ip), x.mac, server)
    return table


def _switch_table(f: Fabric) -> Table:
    a = addresses(f)
    table = _table("switches", "name", "role", "aggregates", "slots", "loopback", "P4Runtime")
    for s in f.switches:
        x = a.switches[s.name]
        table.add_row(s.name, s.role, f"{s.capacity:g}", str(s.slots), str(x.loopback), x.grpc_address)
    return table


def _link_table(f: Fabric) -> Table:
    table = _table("links", "ends", "ports", "rate", "queue", "delay ms")
    for x in f.links:
        ports = f"{f.ports[x.a][x.b]} {f.ports[x.b][x.a]}"
        table.add_row(f"{x.a}-{x.b}", ports, f"{x.rate:g}", str(x.queue), f"{x.delay_ms:g}")
    return table


def _print_state(state: State) -> None:
    console = Console()
    console.print(f"network '{state.name}': fabric {state.fabric} on {state.target}")
    hosts = _table("hosts", "name", "IPv4", "MAC")
    for n, h in state.hosts.items():
        hosts.add_row(n, h.ip, h.mac)
    switches = _table("switches", "name", "device id", "P4Runtime", "answers", "log")
    for n, s in state.switches.items():
        switches.add_row(
            n, str(s.device_id), s.grpc_address, "yes" if _listens(s.grpc_address) else "no", s.log
        )
    links = " ".join(f"{x.a}-{x.b}" for x in state.links)
    console.print(hosts, switches)
    typer.echo(f"links: {links}")
    typer.echo(f"{len(processes_of(state.run))} processes")


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
