# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold controller status`, `usage` and `top`: the switches, the tenants, and what changes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import time
from typing import Annotated

import grpc
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from netfold.controller.operator.controller_client import (
    NO_CONTROLLER,
    REFUSED,
    call_controller,
    duration_s,
    fail,
    note,
    note_standby,
    plain,
    print_json,
)
from netfold.controller.operator.top import Snapshot, document, screen
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.options import AsJson, ControllerOptions, reaches_controller

STEP_DOWN_TIMEOUT_S = 30.0
STATUS_POLL_S = 0.1
"""Seconds between two requests of the status, which has no notification."""

status = typer.Typer()
members = typer.Typer()
step_down = typer.Typer()
top = typer.Typer()
usage = typer.Typer()
events = typer.Typer()


@status.command()
@reaches_controller
def show_status(where: ControllerOptions, as_json: AsJson = False) -> None:
    """Show the switches: which are ready and why one is not, slots in use, entries repaired.

    Exit codes: 0 shown, 4 no controller answers.
    """
    answer = call_controller(where, lambda stub: stub.GetStatus(pb.StatusRequest(), timeout=10))
    if as_json:
        print_json(plain(answer))
        return
    table = Table("switch", "address", "ready", "slots", "repaired", "not ready because")
    for row in answer.switches:
        slots = f"{row.slots_in_use}/{row.slots}"
        ready, repaired = "yes" if row.ready else "no", str(row.repaired_entries)
        if not answer.primary:
            ready = repaired = "?"
        table.add_row(row.name, row.address, ready, slots, repaired, row.reason)
    if not answer.primary:
        note_standby(answer.primary_address)
    if answer.store_fault:
        note(answer.store_fault)
    Console().print(table)
    if answer.leads_since:
        typer.echo(f"the controller at {answer.primary_address} leads since {_time(answer.leads_since)}")
    if answer.withdrawn_elements:
        typer.echo(f"withdrawn: {', '.join(answer.withdrawn_elements)} (netfold fabric status)")


@members.command()
@reaches_controller
def show_members(where: ControllerOptions, as_json: AsJson = False) -> None:
    """Show which controller leads and which stand by, and of a store in etcd its members and their alarms.

    Exit codes: 0 shown, 4 no controller answers.
    """
    answer = call_controller(
        where, lambda stub: stub.ListControllers(pb.ListControllersRequest(), timeout=10)
    )
    if as_json:
        print_json(plain(answer))
        return
    table = Table("member", "address", "role", "version", "fault")
    since = f"leads since {_time(answer.leads_since)}" if answer.leads_since else "leads"
    table.add_row("controller", answer.leader, since)
    for address in answer.standbys:
        table.add_row("controller", address or "none of its own", "stands by")
    for member in answer.members:
        role = "leads" if member.leads else "follows" if member.version else "?"
        table.add_row("etcd", member.address, role, member.version, member.fault)
    if answer.store_fault:
        note(answer.store_fault)
    Console().print(table)


def _time(since: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(since))


@step_down.command()
@reaches_controller
def step_down_controller(where: ControllerOptions) -> None:
    """Let a standby lead in place of the controller, which then stands by. Jobs run on, and members return by
    themselves. Without another controller it leads again after seconds.

    Exit codes: 0 another one leads, 3 it leads again itself, 4 no controller answers, or a standby does.
    """

    async def stepped_down(stub: pb_grpc.ControllerStub) -> tuple[pb.Status, pb.Status]:
        before = await stub.GetStatus(pb.StatusRequest(), timeout=10)
        await stub.StepDown(pb.StepDownRequest(), timeout=10)
        async with asyncio.timeout(STEP_DOWN_TIMEOUT_S):
            while True:
                with contextlib.suppress(grpc.aio.AioRpcError):
                    now = await stub.GetStatus(pb.StatusRequest(), timeout=10)
                    if now.leads_since != before.leads_since:
                        return before, now
                await asyncio.sleep(STATUS_POLL_S)  # a new leader has no event here

    try:
        before, now = call_controller(where, stepped_down)
    except TimeoutError:
        fail(NO_CONTROLLER, f"no controller leads within {STEP_DOWN_TIMEOUT_S:g} s")
    if now.primary:
        fail(
            REFUSED,
            f"no other controller led within seconds; the one at {before.primary_address} leads again",
        )
    typer.echo(f"the controller at {now.primary_address} leads")


@usage.command()
@reaches_controller
def show_usage(where: ControllerOptions, as_json: AsJson = False) -> None:
    """Show what the jobs of each tenant hold and have held. A user sees its own tenant.

    Exit codes: 0 shown, 4 no controller answers.
    """
    answer = call_controller(where, lambda stub: stub.GetUsage(pb.UsageRequest(), timeout=10))
    if as_json:
        print_json(plain(answer))
        return
    note_standby(answer.standby_of)
    table = Table("tenant", "weight", "recent share", "jobs", "queued", "slot-hours", "promised terabit")
    for row in answer.tenants:
        table.add_row(
            row.tenant or "-",
            f"{row.weight:g}",
            f"{row.recent_share:.1%}",
            str(row.installed),
            str(row.queued),
            f"{row.slot_seconds / 3600:.4g}",
            f"{row.promised_bits / 1e12:.4g}",
        )
    Console().print(table)


@top.command()
@reaches_controller
def watch_status(
    where: ControllerOptions,
    interval_s: Annotated[
        float, typer.Option("--interval", min=0.2, help="Seconds between two iterations.")
    ] = 1.0,
    iterations: Annotated[int, typer.Option(min=0, help="Number of iterations; 0: until interrupted.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Show jobs, trees, switches and links, live; with --json an object per iteration.

    Exit codes: 0 interrupted or done, 4 no controller answers.
    """

    async def watched(stub: pb_grpc.ControllerStub) -> None:
        before: Snapshot | None = None
        with contextlib.nullcontext() if as_json else Live(auto_refresh=False, screen=not iterations) as live:
            for iteration in itertools.count(1):
                jobs = await stub.ListJobs(pb.ListJobsRequest(), timeout=10)
                now = Snapshot(
                    time.monotonic(), tuple(jobs.jobs), await stub.GetStatus(pb.StatusRequest(), timeout=10)
                )
                if live is None:
                    typer.echo(json.dumps(document(before, now)))
                else:
                    height = None if iterations else live.console.height
                    live.update(screen(before, now, height), refresh=True)
                if iteration == iterations:
                    return
                before = now
                await asyncio.sleep(interval_s)  # the pace that the operator asked for

    with contextlib.suppress(KeyboardInterrupt):
        call_controller(where, watched)


@events.command()
@reaches_controller
def show_events(
    where: ControllerOptions,
    follow: Annotated[bool, typer.Option("--follow", help="Continue with the events that come.")] = False,
    since: Annotated[
        str | None, typer.Option(help="Age of the oldest event, such as 90s, 5m, 1h or 7d; default: all.")
    ] = None,
) -> None:
    """Show the calls that changed something, one JSON object a line. A user sees those of its tenant.

    Exit codes: 0 shown, 2 bad --since, 4 no controller answers.
    """
    oldest = 0.0 if since is None else time.time() - duration_s("--since", since)
    request = pb.WatchEventsRequest(since=oldest, follow=follow)

    async def show(stub: pb_grpc.ControllerStub) -> None:
        async for answer in stub.WatchEvents(request):
            for line in answer.lines:
                typer.echo(line)

    call_controller(where, show)
