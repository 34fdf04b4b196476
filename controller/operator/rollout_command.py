# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold fabric rollout`: switches get another program, one after the other."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from netfold.controller.jobs.program_records import RolloutState
from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    REFUSED,
    call_controller,
    fail,
    plain,
    print_json,
)
from netfold.controller.operator.fabric_commands import rollout_text
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.stored_programs import read_pipeline
from netfold.p4src.manifest import COMPILED, P4INFO_SUFFIX, own_programs
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.options import AsJson, ControllerOptions, reaches_controller
from netfold.topologies.fabric import FabricError

app = typer.Typer()

REQUEST_S = 60.0
STATUS_POLL_S = 0.5
"""Seconds between two requests of the status: GetFabricStatus has no notification."""


@app.command()
@reaches_controller
def rollout(
    where: ControllerOptions,
    program: Annotated[
        str | None,
        typer.Argument(
            metavar="PROGRAM",
            help="Name of a program that comes with netfold, or a P4Info file in a folder with its manifest.json.",
        ),
    ] = None,
    compiled: Annotated[
        Path | None,
        typer.Option("--program", help="Compiled program; default: the .json next to the P4Info."),
    ] = None,
    cancel: Annotated[
        bool,
        typer.Option("--cancel", help="End the rollout under way. It needs no PROGRAM."),
    ] = False,
    is_followed: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has ended.")] = True,
    as_json: AsJson = False,
) -> None:
    """Give another program to all switches of its chip, one after the other, while jobs run. Jobs leave a switch, or
    wait for it. The first switch that fails its check gets its own program back, and the rollout stops. It continues
    without this command; `netfold fabric status` shows how far it is.

    --cancel ends it: the switch under way gets its own program back, and those that are done keep the new one.

    \b
    Examples:
      netfold fabric rollout netfold-bmv2-256
      netfold fabric rollout --cancel

    Exit codes: 0 done, canceled as --cancel has it, or started with --no-wait, 2 bad file, 3 refused, stopped or
    canceled, 4 no controller answers.
    """
    if cancel is (program is not None) or (cancel and compiled is not None):
        fail(BAD_INPUT, "a rollout has a PROGRAM, and --cancel has none")
    if program is None:
        begun = call_controller(
            where, lambda stub: stub.CancelRollout(pb.CancelRolloutRequest(), timeout=REQUEST_S)
        ).rollout
    else:
        request = _request(program, compiled)
        begun = call_controller(where, lambda stub: stub.RollOutProgram(request, timeout=REQUEST_S)).rollout
    ended = _follow(where, begun, is_quiet=as_json) if is_followed else begun
    if as_json:
        print_json(plain(ended))
    elif not is_followed:
        typer.echo(rollout_text(ended))
    wanted = RolloutState.CANCELED if cancel else RolloutState.DONE
    if ended.state not in (RolloutState.RUNNING, wanted):
        raise typer.Exit(REFUSED)


def _request(program: str, compiled: Path | None) -> pb.RollOutProgramRequest:
    try:
        read = read_pipeline(_pipeline(program, compiled))
    except FabricError as error:
        fail(BAD_INPUT, str(error))
    return pb.RollOutProgramRequest(
        name=read.name,
        p4info=read.p4info,
        blob=read.blob,
        abilities=read.abilities.model_dump_json().encode(),
    )


def _pipeline(program: str, compiled: Path | None) -> Pipeline:
    p4info = COMPILED / f"{program}{P4INFO_SUFFIX}" if program in own_programs() else Path(program)
    return Pipeline(p4info, compiled or p4info.with_name(f"{p4info.name.removesuffix(P4INFO_SUFFIX)}.json"))


def _follow(where: ControllerOptions, begun: pb.Rollout, *, is_quiet: bool) -> pb.Rollout:
    """Show each step until the rollout has ended. A controller that restarts meanwhile continues it."""
    last, shown = begun, ""
    while True:
        if not is_quiet and (text := rollout_text(last)) != shown:
            typer.echo(text)
            shown = text
        if last.state != RolloutState.RUNNING:
            return last
        time.sleep(STATUS_POLL_S)  # a rollout has no stream
        last = call_controller(
            where, lambda stub: stub.GetFabricStatus(pb.FabricStatusRequest(), timeout=REQUEST_S), wait=True
        ).rollout
