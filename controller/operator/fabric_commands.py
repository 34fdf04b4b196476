# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold fabric cordon`, `drain`, `hold`, `undrain` and `status` withdraw parts of a fabric for maintenance.
`rollout` gives switches another program, one after the other."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from netfold.controller.jobs.program_records import RolloutState
from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    REFUSED,
    call_controller,
    duration_s,
    fail,
    note_standby,
    plain,
    print_json,
)
from netfold.controller.switches.endpoint import Pipeline
from netfold.controller.switches.miscabling import Miscabling
from netfold.controller.switches.stored_programs import read_pipeline
from netfold.p4src.manifest import COMPILED, P4INFO_SUFFIX, own_programs
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.options import AsJson, ControllerOptions, reaches_controller
from netfold.topologies.fabric import FabricError

cordon, drain, hold, undrain, status, rollout = (typer.Typer() for _ in range(6))

Elements = Annotated[
    list[str], typer.Argument(metavar="ELEMENT", help="Switches, hosts, and links such as leaf1-spine2.")
]
POLL_S = 1.0
"""Seconds between two looks at what is drained."""

Reason = Annotated[str, typer.Option(help="Text for `netfold fabric status`.")]


REQUEST_S = 60.0

STATUS_POLL_S = 0.5
"""Seconds between two requests of the status: GetFabricStatus has no notification."""


@cordon.command()
@reaches_controller
def _cordon(
    where: ControllerOptions, elements: Elements, reason: Reason = "", as_json: AsJson = False
) -> None:
    """Keep new placements off elements. Jobs and routes that use them stay.

    Exit codes: 0 stored, 2 no such element, 4 no controller answers.
    """
    _withdraw(where, elements, pb.CORDON, reason, as_json=as_json)


@drain.command()
@reaches_controller
def _drain(
    where: ControllerOptions,
    elements: Elements,
    reason: Reason = "",
    wait: Annotated[bool, typer.Option("--wait", help="Return when no job uses the elements.")] = False,
    as_json: AsJson = False,
) -> None:
    """Move jobs and routes off elements. A job without another plan stays, and leaves when there is one.

    With --wait, Ctrl-C ends the wait alone.

    Exit codes: 0 stored, 2 no such element, 4 no controller answers.
    """
    request = pb.WithdrawElementsRequest(elements=elements, intent=pb.DRAIN, reason=reason)
    ends = {_ends(element) for element in elements}

    async def drained(stub: Any) -> pb.FabricStatus:
        answer: pb.FabricStatus = await stub.WithdrawElements(request, timeout=10)
        while wait and any(e.jobs and _ends(e.name) in ends for e in answer.elements):
            await asyncio.sleep(POLL_S)  # a status has no stream
            answer = await stub.GetFabricStatus(pb.FabricStatusRequest(), timeout=10)
        return answer

    _show(call_controller(where, drained), as_json=as_json)


@hold.command()
@reaches_controller
def _hold(
    where: ControllerOptions,
    switches: Annotated[list[str], typer.Argument(metavar="SWITCH", help="Switches, such as a leaf.")],
    duration: Annotated[str, typer.Option("--for", help="Duration, such as 90s, 5m or 1h.")],
    reason: Reason = "",
    as_json: AsJson = False,
) -> None:
    """Let switches be away for a while. No job and no member is lost for it until then: calls wait.

    Exit codes: 0 stored, 2 no such switch or a bad duration, 4 no controller answers.
    """
    _withdraw(where, switches, pb.HOLD, reason, as_json=as_json, hold_s=duration_s("--for", duration))


@undrain.command()
@reaches_controller
def _undrain(where: ControllerOptions, elements: Elements, as_json: AsJson = False) -> None:
    """Give cordoned, drained and held elements back.

    Exit codes: 0 stored, 2 no such element, 4 no controller answers.
    """
    request = pb.GiveBackElementsRequest(elements=elements)
    _show(call_controller(where, lambda stub: stub.GiveBackElements(request, timeout=10)), as_json=as_json)


@status.command()
@reaches_controller
def _status(where: ControllerOptions, as_json: AsJson = False) -> None:
    """Show the withdrawn elements, the jobs that still use them, and what has failed.

    Exit codes: 0 shown, 4 no controller answers.
    """
    request = pb.FabricStatusRequest()
    _show(call_controller(where, lambda stub: stub.GetFabricStatus(request, timeout=10)), as_json=as_json)


def _withdraw(
    where: ControllerOptions,
    elements: list[str],
    intent: pb.Intent,
    reason: str,
    *,
    as_json: bool,
    hold_s: float = 0.0,
) -> None:
    request = pb.WithdrawElementsRequest(elements=elements, intent=intent, reason=reason, hold_s=hold_s)
    _show(call_controller(where, lambda stub: stub.WithdrawElements(request, timeout=10)), as_json=as_json)


def _show(answer: pb.FabricStatus, *, as_json: bool) -> None:
    note_standby(answer.standby_of)
    if as_json:
        print_json(_document(answer))
        return
    if answer.elements:
        table = Table("element", "intent", "since", "reason", "used by")
        for element in answer.elements:
            intent = _intent(element)
            if element.intent == pb.HOLD:
                is_over = element.until < time.time()
                intent += f"{', over since' if is_over else ' until'} {_clock(element.until)}"
            table.add_row(
                element.name, intent, _clock(element.since), Text(element.reason), Text(_use(element))
            )
        Console().print(table)
    else:
        typer.echo("nothing is withdrawn")
    if answer.failed_elements:
        typer.echo(f"failed: {', '.join(answer.failed_elements)}")
    for m in answer.miscablings:
        found = Miscabling(m.switch, m.port, m.arrives_at, m.arrives_by, m.expected_at, m.expected_by)
        typer.echo(f"miscabled: {found}")
    if answer.HasField("rollout"):
        typer.echo(rollout_text(answer.rollout))


def rollout_text(rollout: pb.Rollout) -> str:
    """How far a rollout is, and why it has stopped."""
    done, whole = len(rollout.done), len(rollout.done) + len(rollout.left)
    text = f"rollout of program {rollout.program}: {rollout.state}, {done} of {whole} switches"
    if rollout.state == RolloutState.RUNNING and rollout.left:
        text += f"; {rollout.left[0]} gets {'its program back' if rollout.reason else 'it'}"
    return f"{text}; {rollout.reason}" if rollout.reason else text


def _ends(element: str) -> frozenset[str]:
    """The parts of a name, as a link may be named from either end."""
    return frozenset(element.split("-"))


def _clock(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _use(element: pb.WithdrawnElement) -> str:
    """The jobs that use the element, each with the reason why it stays."""
    if not element.jobs:
        return "no job"
    return "\n".join(f"{job.name}: {job.reason}" if job.reason else job.name for job in element.jobs)


def _document(answer: pb.FabricStatus) -> dict[str, Any]:
    document: dict[str, Any] = plain(answer)
    for row, element in zip(document["elements"], answer.elements, strict=True):
        row["intent"] = _intent(element)
        row["is_drained"] = element.intent == pb.DRAIN and not element.jobs
    return document


def _intent(element: pb.WithdrawnElement) -> str:
    return pb.Intent.Name(element.intent).lower()


@rollout.command()
@reaches_controller
def _rollout(
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
