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


START, OPERATION, FABRICS, STUDIES = "Start here", "Jobs", "Fabrics and hosts", "Studies"
"""Panels of the help."""


@dataclass(frozen=True)
class CommandGroup:
    """Commands of several modules under one word, as `netfold GROUP NAME ...`."""

    help: str
    panel: str


@dataclass(frozen=True)
class Command:
    """Place of a sub-command: `attribute` of `module`, below `netfold`, is a typer.Typer. One that holds a single
    command, and no callback, becomes `netfold NAME ...` itself; others become the group `netfold NAME SUB ...`."""

    module: str
    help: str
    panel: str | None = None
    attribute: str = "app"
    extra: str = ""
    """Extra of netfold[...] that it needs; for some commands only with some options."""


COMMANDS: dict[str, Command | CommandGroup] = {
    "run": Command(
        "testbed.cli",
        "Train a real model through the switches of a fabric; show what happened.",
        START,
        "run",
        extra="testbed",
    ),
    "plan": Command(
        "controller.operator.plan_command",
        "Choose where a job's gradients are added up, and at what rate.",
        START,
        extra="controller",
    ),
    "doctor": Command(
        "testbed.cli", "Show what this machine has, what is missing and how to get it.", START, "doctor"
    ),
    "controller": CommandGroup("Run the controller of a fabric; watch its switches and jobs.", OPERATION),
    "controller run": Command(
        "testbed.controller_command",
        "Control the switches of a fabric until interrupted.",
        extra="controller",
    ),
    "controller status": Command(
        "controller.operator.status_commands",
        "Show the switches, and why one is not ready.",
        attribute="status",
        extra="controller",
    ),
    "controller members": Command(
        "controller.operator.status_commands",
        "Show which controller leads, which stand by, and the members of etcd.",
        attribute="members",
        extra="controller",
    ),
    "controller step-down": Command(
        "controller.operator.status_commands",
        "Let a standby lead in place of the controller.",
        attribute="step_down",
        extra="controller",
    ),
    "controller top": Command(
        "controller.operator.status_commands",
        "Watch jobs, trees, switches and links.",
        attribute="top",
        extra="controller",
    ),
    "controller usage": Command(
        "controller.operator.status_commands",
        "Show what each tenant's jobs hold and have held.",
        attribute="usage",
        extra="controller",
    ),
    "controller web": Command(
        "controller.operator.web_commands",
        "Serve a live page of fabric, trees and jobs.",
        attribute="web",
        extra="web",
    ),
    "controller token": Command(
        "controller.operator.token_command",
        "Make a token and its line for --identities.",
        extra="controller",
    ),
    "controller backup": Command(
        "controller.operator.store_commands",
        "Copy the state of a controller, which may run.",
        attribute="backup",
        extra="controller",
    ),
    "controller restore": Command(
        "controller.operator.store_commands",
        "Put a copy in the place of a stopped controller's state.",
        attribute="restore",
        extra="controller",
    ),
    "controller copy": Command(
        "controller.operator.store_commands",
        "Copy a stopped controller's state to etcd, or from there.",
        attribute="copy",
        extra="controller",
    ),
    "controller verify": Command(
        "controller.operator.store_commands",
        "Check the state of a controller, or a copy of it.",
        attribute="verify",
        extra="controller",
    ),
    "controller finalize": Command(
        "controller.operator.store_commands",
        "End an upgrade: the version before cannot use the state any more.",
        attribute="finalize",
        extra="controller",
    ),
    "controller events": Command(
        "controller.operator.status_commands",
        "Show each change with its caller: submitted, canceled, drained.",
        attribute="events",
        extra="controller",
    ),
    "controller slurm": Command(
        "controller.slurm.commands",
        "Give Slurm's jobs their netfold jobs: prolog, epilog, sweep.",
        extra="controller",
    ),
    "job": Command(
        "controller.operator.job_commands",
        "Submit, inspect, replan and cancel jobs.",
        OPERATION,
        extra="controller",
    ),
    "replay": Command(
        "controller.operator.web_commands", "Open a recording in the page.", OPERATION, "replay", extra="web"
    ),
    "fabric": CommandGroup(
        "List, check and show fabrics; change one in use; withdraw parts for maintenance.", FABRICS
    ),
    "fabric list": Command(
        "topologies.cli", "List the specs that come with netfold.", attribute="listed", extra="testbed"
    ),
    "fabric check": Command(
        "topologies.cli", "Check a spec; print each error with its line.", attribute="check", extra="testbed"
    ),
    "fabric show": Command(
        "topologies.cli",
        "Show hosts, switches and links with their addresses.",
        attribute="show",
        extra="testbed",
    ),
    "fabric schema": Command(
        "topologies.cli", "Print the JSON Schema of spec files.", attribute="schema", extra="testbed"
    ),
    "fabric status": Command(
        "controller.operator.fabric_commands",
        "Show what is withdrawn or has failed, and the jobs there.",
        attribute="status",
        extra="controller",
    ),
    "fabric diff": Command(
        "controller.operator.fabric_file_commands",
        "Show what a fabric's file changes, and which jobs that hits.",
        attribute="diff",
        extra="controller",
    ),
    "fabric apply": Command(
        "controller.operator.fabric_file_commands",
        "Change the fabric in use to that of a file, while jobs run.",
        attribute="apply",
        extra="controller",
    ),
    "fabric pin": Command(
        "controller.operator.fabric_file_commands",
        "Write the numbers of a fabric in use into its file.",
        attribute="pin",
        extra="controller",
    ),
    "fabric rollout": Command(
        "controller.operator.fabric_commands",
        "Give switches another program, one by one, while jobs run.",
        attribute="rollout",
        extra="controller",
    ),
    "fabric cordon": Command(
        "controller.operator.fabric_commands",
        "Keep new placements off switches, links and hosts.",
        attribute="cordon",
        extra="controller",
    ),
    "fabric drain": Command(
        "controller.operator.fabric_commands",
        "Move jobs and routes off switches, links and hosts.",
        attribute="drain",
        extra="controller",
    ),
    "fabric hold": Command(
        "controller.operator.fabric_commands",
        "Let switches be away for a while.",
        attribute="hold",
        extra="controller",
    ),
    "fabric undrain": Command(
        "controller.operator.fabric_commands",
        "Give switches, links and hosts back.",
        attribute="undrain",
        extra="controller",
    ),
    "network": Command(
        "testbed.network.cli",
        "Bring a fabric up as a Mininet network; look into it.",
        FABRICS,
        extra="testbed",
    ),
    "host": CommandGroup(
        "Run what runs on hosts: workers, parameter servers, MPI programs, test traffic.", FABRICS
    ),
    "host worker": Command(
        "traffic.cli", "Run a worker of a job on this host.", attribute="worker", extra="testbed"
    ),
    "host ps": Command("traffic.cli", "Run a parameter server of a job on this host.", attribute="ps"),
    "host mpirun": Command(
        "testbed.mpirun_command",
        "Run an MPI program whose collectives go through the network.",
        attribute="mpirun",
    ),
    "host ring": Command(
        "traffic.cli", "Run a worker of the peer, a TCP ring.", attribute="ring", extra="testbed"
    ),
    "host send": Command(
        "testbed.send_command",
        "Send one gradient made by hand; see what the switches do with it.",
        attribute="send",
        extra="testbed",
    ),
    "host background": Command("traffic.cli", "Send or take background traffic.", attribute="background"),
    "roce": Command(
        "testbed.roce.cli", "RDMA endpoints as workers: try it, their agent, their program.", FABRICS
    ),
    "deploy": Command(
        "controller.operator.deploy_commands",
        "Write the files that make a bare server a switch, or a host of parameter servers.",
        FABRICS,
    ),
    "measure": Command(
        "evaluation.testbed.cli",
        "Measure on this machine, in Mininet: figures as a table, as JSON, as a picture.",
        STUDIES,
        extra="testbed",
    ),
    "simulate": Command(
        "simulator.command.cli",
        "Simulate one's own jobs on one's own fabric, with the traffic of others.",
        STUDIES,
        extra="sim",
    ),
    "reproduce": Command(
        "evaluation.papers.cli",
        "Repeat the papers' simulations, and show our values next to theirs.",
        STUDIES,
        extra="sim",
    ),
}


def build(called: str | None) -> typer.Typer:
    """The command tree, with the module of the `called` command loaded and the others as lines of the help."""
    app = typer.Typer(
        no_args_is_help=True,
        help="netfold: switches add up the gradients of distributed training while they carry them.",
    )
    app.callback()(_root)
    parents = {"": app}
    for path, entry in COMMANDS.items():
        group, _, name = path.rpartition(" ")
        if isinstance(entry, CommandGroup):
            parents[path] = typer.Typer(no_args_is_help=True)
            app.add_typer(parents[path], name=name, help=entry.help, rich_help_panel=entry.panel)
        elif path == called:
            _attach(parents[group], name, entry)
        else:
            parents[group].command(name, help=entry.help, rich_help_panel=entry.panel)(_nothing)
    return app


def _attach(parent: typer.Typer, name: str, command: Command) -> None:
    sub: typer.Typer = getattr(importlib.import_module(f"netfold.{command.module}"), command.attribute)
    single = sub.registered_commands[0] if len(sub.registered_commands) == 1 else None
    group = bool(sub.registered_groups or sub.registered_callback)
    if single is not None and not group and single.callback is not None:
        parent.command(name, cls=single.cls, help=single.help, context_settings=single.context_settings)(
            single.callback
        )
    else:
        parent.add_typer(sub, name=name, help=command.help, no_args_is_help=True)


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
    """The command of a command line, or of the line that a shell completes: a word, or a group's and one of its
    commands. None without one."""
    words = arguments
    if COMPLETION in environment:
        words = next((environment[v] for v in COMPLETED_LINES if v in environment), "").split()[1:]
    named = [word for word in words if not word.startswith("-")]
    paths = (" ".join(named[:2]), *named[:1])
    return next((path for path in paths if path in COMMANDS), None)


def main() -> None:
    """Entry point of the `netfold` script."""
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # a command reports its errors itself, in one line
    called = called_command(sys.argv[1:], os.environ)
    entry = COMMANDS.get(called or "")
    extra = entry.extra if isinstance(entry, Command) else ""
    try:
        with exit_if_missing(f"netfold {called}", extra):
            build(called)(prog_name="netfold")
    except KeyboardInterrupt:  # while a command is still being imported; later it says itself how it ends
        sys.exit(INTERRUPTED)
