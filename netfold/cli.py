# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The `netfold` command: a thin index of the sub-commands, each imported only when it is called.

A sub-command lives beside the code that it drives (`traffic/cli.py`, `topologies/cli.py`, ...), so that starting a
switch process does not import the planners, and a missing optional tool hurts only the command that needs it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from netfold.missing_package import exit_if_missing

INTERRUPTED = 130
COMPLETION = "_NETFOLD_COMPLETE"
COMPLETED_LINES = ("_TYPER_COMPLETE_ARGS", "COMP_WORDS")
"""Variables of a request for completion, and of its command line: of zsh and fish, of bash."""


@dataclass(frozen=True)
class Command:
    """Place of a sub-command: `attribute` of `module`, below `netfold`, is a typer.Typer. One that holds a single
    command, and no callback, becomes `netfold NAME ...` itself; others become the group `netfold NAME SUB ...`."""

    module: str
    help: str
    attribute: str = "app"
    extra: str = ""
    """Extra of netfold[...] that it needs; for some commands only with some options."""


COMMANDS: dict[str, Command] = {
    "run": Command(
        "testbed.cli",
        "Train a real model through the switches of a fabric; show what happened.",
        "run",
        extra="testbed",
    ),
    "measure": Command(
        "evaluation.testbed.cli",
        "Measure on this machine, in Mininet: figures as a table, as JSON, as a picture.",
        extra="testbed",
    ),
    "doctor": Command(
        "testbed.cli", "Show what this machine has, what is missing and how to get it.", "doctor"
    ),
    "plan": Command(
        "controller.operator.plan_command",
        "Choose where a job's gradients are added up, and at what rate.",
        extra="controller",
    ),
    "reproduce": Command(
        "evaluation.papers.cli", "Repeat the papers' simulations, our values beside theirs.", extra="sim"
    ),
    "simulate": Command(
        "simulator.command.cli",
        "Simulate one's own jobs on one's own fabric, beside the traffic of others.",
        extra="sim",
    ),
    "controller": Command(
        "testbed.controller_command",
        "Run the controller of a fabric, or look at its switches.",
        extra="controller",
    ),
    "job": Command(
        "controller.operator.job_commands", "Submit, look at and cancel jobs.", "job", extra="controller"
    ),
    "slot": Command(
        "controller.operator.slot_command",
        "Read a slot of a job at a switch: its chunk, contributions and sums.",
        extra="controller",
    ),
    "top": Command(
        "controller.operator.job_commands",
        "Watch jobs, trees, switches and links.",
        "top_app",
        extra="controller",
    ),
    "web": Command(
        "controller.operator.web_commands",
        "Serve a live page of fabric, trees and jobs.",
        "web",
        extra="web",
    ),
    "replay": Command(
        "controller.operator.web_commands", "Open a recording in the page.", "replay", extra="web"
    ),
    "replan": Command(
        "controller.operator.job_commands",
        "Plan running jobs again; move those that gain.",
        "replan_app",
        extra="controller",
    ),
    "fabric": Command(
        "topologies.cli", "Look at fabrics: show, check, list, schema.", "fabric", extra="testbed"
    ),
    "up": Command("testbed.network.cli", "Bring a fabric up as a Mininet network.", "up", extra="testbed"),
    "down": Command("testbed.network.cli", "Take the network down.", "down", extra="testbed"),
    "status": Command("testbed.network.cli", "Show the network that is up.", "status", extra="testbed"),
    "exec": Command(
        "testbed.network.cli", "Run a command in a host of the network.", "execute", extra="testbed"
    ),
    "shell": Command("testbed.network.cli", "Open p4runtime-shell on a switch.", "shell", extra="testbed"),
    "console": Command(
        "testbed.network.cli",
        "Open the commands of simple_switch_CLI on a switch.",
        "console",
        extra="testbed",
    ),
    "switch": Command(
        "testbed.network.switch_cli", "Show what a switch of the network holds.", "switch", extra="testbed"
    ),
    "pcap": Command("testbed.network.cli", "Watch a link with tcpdump.", "pcap", extra="testbed"),
    "link": Command(
        "testbed.network.cli", "Cut links of the network, and restore them.", "link", extra="testbed"
    ),
    "faults": Command(
        "testbed.network.cli",
        "Lose, double, reorder, corrupt and delay what passes a link.",
        "faults",
        extra="testbed",
    ),
    "deploy": Command(
        "controller.operator.deploy_commands",
        "Write the files that make a bare server a switch, or a host of parameter servers.",
    ),
    "worker": Command("traffic.cli", "Run a worker of a job on this host.", "worker", extra="testbed"),
    "mpirun": Command(
        "testbed.mpirun_command", "Run an MPI program whose collectives go through the network.", "mpirun"
    ),
    "roce": Command("testbed.roce.cli", "RDMA endpoints as workers: try it, their agent, their program."),
    "ps": Command("traffic.cli", "Run a parameter server of a job on this host.", "ps"),
    "ring": Command("traffic.cli", "Run a worker of the peer, a TCP ring.", "ring", extra="testbed"),
    "send": Command("traffic.cli", "Craft gradient packets by hand.", "send", extra="testbed"),
    "background": Command("traffic.cli", "Send or take background traffic.", "background"),
}


def build(called: str | None) -> typer.Typer:
    """The command tree, with the module of the `called` sub-command loaded and the others as lines of the help."""
    app = typer.Typer(
        no_args_is_help=True,
        help="netfold: switches add up the gradients of distributed training while they carry them.",
    )
    app.callback()(_root)
    for name, command in COMMANDS.items():
        if name == called:
            _attach(app, name, command)
        else:
            app.command(name, help=command.help)(_nothing)
    return app


def _attach(app: typer.Typer, name: str, command: Command) -> None:
    sub: typer.Typer = getattr(importlib.import_module(f"netfold.{command.module}"), command.attribute)
    single = sub.registered_commands[0] if len(sub.registered_commands) == 1 else None
    group = bool(sub.registered_groups or sub.registered_callback)
    if single is not None and not group and single.callback is not None:
        app.command(name, cls=single.cls, context_settings=single.context_settings)(single.callback)
    else:
        app.add_typer(sub, name=name, help=command.help)


def _nothing() -> None:
    pass


def _print_version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"netfold {importlib.metadata.version('netfold')}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def called_command(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """The sub-command of a command line, or of the line that a shell completes; None without one."""
    words = arguments
    if COMPLETION in environment:
        words = next((environment[v] for v in COMPLETED_LINES if v in environment), "").split()[1:]
    return next((word for word in words if not word.startswith("-")), None)


def main() -> None:
    """Entry point of the `netfold` script."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # a command reports its errors itself, in one line
    called = called_command(sys.argv[1:], os.environ)
    extra = COMMANDS[called].extra if called in COMMANDS else ""
    try:
        with exit_if_missing(f"netfold {called}", extra):
            build(called)(prog_name="netfold")
    except KeyboardInterrupt:  # while a command is still being imported; later it says itself how it ends
        sys.exit(INTERRUPTED)
