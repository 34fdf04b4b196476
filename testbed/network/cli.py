# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold network`: commands on emulated networks."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from netfold.controller.switches.election import tool_election_id
from netfold.protocol.environment import Variable
from netfold.protocol.runtime import DEFAULT_NAME, is_only_user
from netfold.testbed.network import kernel, p4runtime_shell, supervisor
from netfold.testbed.network.capture import capture_to, open_capture, write_frames
from netfold.testbed.network.errors import NetworkError, NoNamespacesError
from netfold.testbed.network.faults import Faults, apply_faults, read_faults
from netfold.testbed.network.isolation import enter_network, is_isolated, pick_mode, run_isolated
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.options import ModeOption, NameOption
from netfold.testbed.network.signals import TerminationSignals
from netfold.testbed.network.state import UNIX, RunDirectory, State, processes_of
from netfold.testbed.network.sudo_user import sudo_user
from netfold.testbed.network.switch_entries import entries
from netfold.testbed.network.switch_requests import SwitchAction, request
from netfold.testbed.network.targets import installed_command
from netfold.testbed.network.tools import tool
from netfold.topologies import cli
from netfold.topologies.addressing import FIRST_GRPC_PORT
from netfold.topologies.cli import BAD_INPUT, AsJson, FabricArgument, fail, new_table
from netfold.topologies.spec import load_exercise, load_fabric

app = typer.Typer()
link = typer.Typer(no_args_is_help=True)
faults = typer.Typer(no_args_is_help=True)
switch = typer.Typer(no_args_is_help=True)

_PASS_ON = {"ignore_unknown_options": True}
"""Options before `--` are netfold's if it knows them, else the command's."""

_NETWORK, _SWITCHES, _LINKS = "Network", "Switches", "Links"
"""Panels of the help."""

LinkArgument = Annotated[
    str, typer.Argument(metavar="LINK", help="Both ends of the link, for example leaf1-spine1.")
]

SwitchArgument = Annotated[str, typer.Argument(metavar="SWITCH")]

one_line_errors = cli.one_line_errors(NetworkError)


@app.command("up", rich_help_panel=_NETWORK)
@one_line_errors
def _up(
    fabric: FabricArgument,
    target: Annotated[
        str,
        typer.Option(
            help="Switch target: softswitch, bmv2, tofino-model, or auto (softswitch if it can run)."
        ),
    ] = "auto",
    scale: Annotated[
        float | None, typer.Option(help="Factor from the fabric's rates to rates on the wire.")
    ] = None,
    pcap_dir: Annotated[
        Path | None, typer.Option("--pcap", metavar="DIR", help="Capture every switch port to this folder.")
    ] = None,
    arp: Annotated[
        str, typer.Option(help="static: ARP entry of the gateway in every host; fabric: switches answer ARP.")
    ] = "static",
    first_grpc_port: Annotated[
        int, typer.Option(help="P4Runtime port of the first switch.")
    ] = FIRST_GRPC_PORT,
    addresses_of: Annotated[
        str,
        typer.Option(
            "--addresses",
            help="For a topology.json of p4lang/tutorials: file (its addresses, host commands, programs and entries) "
            "or netfold (netfold's addresses, for its controller).",
        ),
    ] = "file",
    foreground: Annotated[
        bool,
        typer.Option(
            "--foreground",
            help="Stay in the foreground with Mininet's prompt; without a terminal until Ctrl-C.",
        ),
    ] = False,
    name: NameOption = DEFAULT_NAME,
    network: ModeOption = NetworkMode.AUTO,
) -> None:
    """Start a fabric as a Mininet network. Switches wait for a controller on their P4Runtime ports: without it no host
    reaches another."""
    chosen = load_fabric(fabric)
    if arp not in ("static", "fabric"):
        fail(f"--arp {arp}: expected static or fabric", BAD_INPUT)
    if addresses_of not in ("file", "netfold"):
        fail(f"--addresses {addresses_of}: expected file or netfold", BAD_INPUT)
    exercise = load_exercise(fabric) if addresses_of == "file" else None
    if foreground:
        run_isolated(name, network)
    options: dict[str, Any] = {
        "target": target,
        "scale": scale,
        "pcap_dir": pcap_dir,
        "arp": arp,
        "name": name,
        "first_grpc_port": first_grpc_port,
        "exercise": exercise,
    }
    if foreground:

        def on_ready() -> None:
            _print_state(RunDirectory(name).up())
            if exercise is None:
                typer.echo(_no_controller(fabric, name, scale, first_grpc_port))

        supervisor.hold(chosen, options, on_ready, prompt=sys.stdin.isatty())
        return
    if is_isolated():
        supervisor.start(chosen, options)
        _print_state(RunDirectory(name).up())
        return
    supervisor.start(chosen, options, pick_mode(network))
    os.execv(installed_command("netfold"), ["netfold", "network", "status", "--name", name])


def _no_controller(fabric: str, name: str, scale: float | None, first_grpc_port: int) -> str:
    """Describe the step before `pingall`: a controller, with the options that the network was started with."""
    command = ["netfold", "controller", "run", fabric]
    command += [] if name == DEFAULT_NAME else ["--name", name]
    command += [] if scale is None else ["--scale", f"{scale:g}"]
    command += [] if first_grpc_port == FIRST_GRPC_PORT else ["--first-grpc-port", str(first_grpc_port)]
    return (
        "The switches have no program yet: hosts reach each other once a controller runs. In another terminal:\n"
        f"  {shlex.join(command)}"
    )


@app.command("down", rich_help_panel=_NETWORK)
@one_line_errors
def _down(name: NameOption = DEFAULT_NAME) -> None:
    """Stop the network, or remove the remains of a crashed one."""
    typer.echo(supervisor.stop(RunDirectory(name)))


@app.command("status", rich_help_panel=_NETWORK)
@one_line_errors
def _status(
    as_json: AsJson = False,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Show the running network."""
    enter_network(name)
    state = RunDirectory(name).up()
    if as_json:
        typer.echo(json.dumps(asdict(state), indent=1))
    else:
        _print_state(state)


@app.command("exec", rich_help_panel=_NETWORK, context_settings=_PASS_ON)
@one_line_errors
def _exec(
    host: Annotated[str, typer.Argument(metavar="HOST")],
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...")],
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Run a command in a host of the network; exits with its exit code."""
    state = _enter_namespaces(name)
    environment = {**os.environ, Variable.NETWORK: state.run, Variable.NAME: name}
    os.execve(tool("mnexec"), ["mnexec", "-a", str(state.host(host).pid), *command], environment)


@app.command("shell", rich_help_panel=_SWITCHES)
@one_line_errors
def _shell(
    switch: SwitchArgument,
    environment: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            envvar=Variable.P4RT_SHELL,
            help="Virtual environment of p4runtime-shell, or its interpreter; default: the checkout's.",
        ),
    ] = None,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Open p4runtime-shell on a switch: read-only once a controller has led it, else the newest shell writes."""
    enter_network(name)
    found = RunDirectory(name).up().switch(switch)
    python = p4runtime_shell.shell_python(environment)
    command = [str(python), "-m", "p4runtime_sh", "--grpc-addr", found.grpc_address]
    os.execv(
        python, [*command, "--device-id", str(found.device_id), "--election-id", f"0,{tool_election_id()}"]
    )


@app.command("console", rich_help_panel=_SWITCHES)
@one_line_errors
def _console(
    switch: SwitchArgument,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Open the commands of simple_switch_CLI on a softswitch (< commands.txt runs a file)."""
    enter_network(name)
    found = RunDirectory(name).up().switch(switch)
    if not Path(found.control_socket).is_socket():
        raise NetworkError(f"switch '{switch}' has no control socket: its target is not softswitch")
    command = installed_command("softswitch")
    os.execv(command, [command, "cli", found.control_socket])


@app.command("pcap", rich_help_panel=_LINKS)
@one_line_errors
def _pcap(
    link: LinkArgument,
    file: Annotated[
        Path | None, typer.Option("--out", "-w", help="Capture to this pcap file; default: print packets.")
    ] = None,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Capture both directions of a link with tcpdump."""
    interface = _enter_namespaces(name).link(link).root_interface
    if is_only_user():
        _capture_as_user(interface, file)
    user = sudo_user()
    owner = (user.name if user is not None else None) or "root"
    output = ["-l"] if file is None else ["-U", "-Z", owner, "-w", str(file)]
    os.execv(tool("tcpdump"), ["tcpdump", "-n", "--immediate-mode", "-i", interface, *output])


def _capture_as_user(interface: str, file: Path | None) -> NoReturn:
    if file is not None:
        capture_to(interface, file)
    TerminationSignals().install()
    with open_capture(interface) as frames:
        # As root tcpdump becomes another user, and there is none: in an inner namespace it is not root. Ctrl-C is for
        # this process alone, so that tcpdump prints what came before it.
        command = [tool("unshare"), "--map-user=1", "--map-group=1", tool("tcpdump"), "-n", "-l", "-r", "-"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as printer:
            assert printer.stdin is not None
            write_frames(frames, printer.stdin)


app.command("entries", rich_help_panel=_SWITCHES)(entries)
app.add_typer(switch, name="switch", help="Kill a switch, and start it again.", rich_help_panel=_SWITCHES)
app.add_typer(link, name="link", help="Cut and restore links.", rich_help_panel=_LINKS)
app.add_typer(
    faults,
    name="faults",
    help="Lose, double, reorder, corrupt and delay frames of a link.",
    rich_help_panel=_LINKS,
)


@link.command("down")
@one_line_errors
def _link_down(link: LinkArgument, name: NameOption = DEFAULT_NAME) -> None:
    """Cut a link: both ends lose their carrier."""
    _set_link(link, name, up=False)


@link.command("up")
@one_line_errors
def _link_up(link: LinkArgument, name: NameOption = DEFAULT_NAME) -> None:
    """Restore a link."""
    _set_link(link, name, up=True)


@link.command("show")
@one_line_errors
def _link_show(name: NameOption = DEFAULT_NAME) -> None:
    """List all links and their state."""
    for x in _enter_namespaces(name).links:
        typer.echo(f"{x.a}-{x.b} {'up' if kernel.is_up(x.root_interface) else 'down'}")


def _set_link(link: str, name: str, up: bool) -> None:
    kernel.set_link(_enter_namespaces(name).link(link).root_interface, up)


@switch.command("kill")
@one_line_errors
def _switch_kill(switch: SwitchArgument, name: NameOption = DEFAULT_NAME) -> None:
    """Kill a switch, as a crash would."""
    _request_action(name, SwitchAction.KILL, switch)


@switch.command("start")
@one_line_errors
def _switch_start(switch: SwitchArgument, name: NameOption = DEFAULT_NAME) -> None:
    """Start a switch that has ended, and wait until it answers. It has no program: a controller installs it again."""
    _request_action(name, SwitchAction.START, switch)


def _request_action(name: str, action: SwitchAction, switch: str) -> None:
    enter_network(name)
    directory = RunDirectory(name)
    request(directory.owner_socket, action, directory.up().switch(switch).name)


def _enter_namespaces(name: str) -> State:
    """For commands that need interfaces. Raises NoNamespacesError in `userland`, NotUpError."""
    enter_network(name)
    state = RunDirectory(name).up()
    if not state.has_namespaces:
        raise NoNamespacesError(name)
    return state


@faults.command("set")
@one_line_errors
def _faults_set(
    link: LinkArgument,
    loss: Annotated[float, typer.Option(help="Probability, 0 to 1.")] = 0.0,
    duplicate: Annotated[float, typer.Option(help="Probability, 0 to 1.")] = 0.0,
    reorder: Annotated[float, typer.Option(help="Probability, 0 to 1.")] = 0.0,
    corrupt: Annotated[float, typer.Option(help="Probability, 0 to 1.")] = 0.0,
    delay_ms: Annotated[float, typer.Option(help="Added to the link's own delay.")] = 0.0,
    jitter_ms: Annotated[float, typer.Option(help="Delays are uniform in delay +- jitter.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed: determines the fate of the n-th frame.")] = 1,
    toward: Annotated[
        str | None, typer.Option(metavar="NODE", help="Only frames to this end; default: both directions.")
    ] = None,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Set the faults of a link; options that are not given are off."""
    requested = Faults(loss, duplicate, reorder, corrupt, delay_ms, jitter_ms, seed)
    enter_network(name)
    state = RunDirectory(name).up()
    for sender, receiver in state.link(link).directions(toward):
        apply_faults(state, sender, receiver, requested)


@faults.command("clear")
@one_line_errors
def _faults_clear(
    link: Annotated[str | None, typer.Argument(metavar="LINK", help="Default: all links.")] = None,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Clear the faults of links."""
    enter_network(name)
    state = RunDirectory(name).up()
    for ends in state.links if link is None else [state.link(link)]:
        for sender, receiver in ends.directions(None):
            apply_faults(state, sender, receiver, Faults())


@faults.command("show")
@one_line_errors
def _faults_show(name: NameOption = DEFAULT_NAME) -> None:
    """Show the faults that are set and the frames affected so far, by link and direction."""
    enter_network(name)
    rows = []
    for (sender, receiver), found in read_faults(RunDirectory(name).up()).items():
        words = ", ".join(f"{count} {kind}" for kind, count in found.counts.items() if count)
        settings = "" if found.settings is None else str(found.settings)
        if settings or words:
            rows.append(f"{sender} -> {receiver}: {settings or 'none set'}; {words or 'no frame'} so far")
    typer.echo("\n".join(rows) or "no faults are set, and no frame was affected")


def _print_state(state: State) -> None:
    console = Console()
    console.print(f"network '{state.name}': fabric {state.fabric} on {state.target}")
    hosts = new_table("hosts", "name", "IPv4", "MAC")
    for n, h in state.hosts.items():
        hosts.add_row(n, h.ip, h.mac)
    switches = new_table("switches", "name", "device id", "P4Runtime", "answers", "log")
    for n, s in state.switches.items():
        switches.add_row(
            n, str(s.device_id), s.grpc_address, "yes" if _listens(s.grpc_address) else "no", s.log
        )
    interfaces = state.links if state.has_namespaces else ()
    cut = [f"{x.a}-{x.b}" for x in interfaces if not kernel.is_up(x.root_interface)]
    links = " ".join(f"{x.a}-{x.b}" for x in state.links)
    console.print(hosts, switches)
    typer.echo(f"links: {links}")
    if cut:
        typer.echo(f"down: {' '.join(cut)}")
    typer.echo(f"{len(processes_of(state.run))} processes")


def _listens(address: str) -> bool:
    if address.startswith(UNIX):
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(address.removeprefix(UNIX)) == 0
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
