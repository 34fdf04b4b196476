# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold job`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    JOB_FAILED,
    JobArgument,
    call_controller,
    fail,
    note,
    note_standby,
    plain,
    print_json,
)
from netfold.controller.operator.job_text import headline, job_line, job_lines, packet_lines, plan_of
from netfold.controller.operator.top import connected_members
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.options import AsJson, ControllerOptions, reaches_controller

app = typer.Typer()

_TERMINAL = (pb.FAILED, pb.DONE, pb.CANCELED)


@app.command()
@reaches_controller
def submit(
    where: ControllerOptions,
    file: Annotated[Path, typer.Argument(help="Job file (docs/reference/jobs.md); -: standard input.")],
    queue: Annotated[bool, typer.Option("--queue", help="Queue the job if no plan fits now.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Return when the job runs or has ended.")] = False,
    as_json: AsJson = False,
) -> None:
    """Submit a job.

    With --queue or --wait the command waits up to 60 s for a controller that does not listen yet.

    Exit codes: 0 admitted (or queued), 2 bad job file or name in use, 3 refused (the message names the
    bottleneck and a rate that fits), 4 no controller answers, 6 the job failed (with --wait).
    """
    source = "standard input" if str(file) == "-" else str(file)
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        fail(BAD_INPUT, f"{file}: {error}")

    async def submitted(stub: pb_grpc.ControllerStub) -> pb.Job:
        request = pb.SubmitJobRequest(spec_yaml=text, queue=queue, source=source)
        answer: pb.Job = await stub.SubmitJob(request, timeout=120)
        if wait:
            if answer.state == pb.QUEUED:
                note(f"{job_line(answer, headline(answer.reason))}; waiting until it runs")
            async for latest in stub.WatchJob(pb.JobName(name=answer.name)):
                answer = latest
                if answer.state in (pb.RUNNING, *_TERMINAL):
                    break
        return answer

    answer = call_controller(where, submitted, wait=queue or wait)
    _show_job(answer, as_json)
    if answer.state == pb.FAILED:
        raise typer.Exit(JOB_FAILED)


@app.command("list")
@reaches_controller
def list_jobs(
    where: ControllerOptions,
    every: Annotated[bool, typer.Option("--all", help="Include ended jobs.")] = False,
    as_json: AsJson = False,
) -> None:
    """List jobs, one a line; `job explain` has the whole reason.

    Exit codes: 0 listed, 4 no controller answers.
    """
    answer = call_controller(where, lambda stub: stub.ListJobs(pb.ListJobsRequest(all=every), timeout=10))
    note_standby(answer.standby_of)
    if as_json:
        print_json([_job_document(j) for j in answer.jobs])
        return
    Console().print(jobs_table(answer.jobs))


@app.command()
@reaches_controller
def show(
    where: ControllerOptions,
    name: JobArgument,
    packets: Annotated[
        bool, typer.Option("--packets", help="Show the fields of the job's packets, to make some by hand.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a job: state, plan, trees, members.

    Exit codes: 0 shown, 4 no controller answers, 5 no such job.
    """
    answer = call_controller(where, lambda s: s.GetJob(pb.JobName(name=name), timeout=10))
    _show_job(answer, as_json)
    if packets and not as_json:
        for line in packet_lines(answer):
            typer.echo(line)


@app.command()
@reaches_controller
def add(
    where: ControllerOptions,
    name: JobArgument,
    hosts: Annotated[list[str], typer.Argument(help="Hosts of the fabric that are not members of the job.")],
    as_json: AsJson = False,
) -> None:
    """Add hosts to a running job as workers.

    A host takes part from the epoch that starts when its worker joins (`netfold host worker --job NAME --host HOST`).
    Its first call is the one that the other workers are in.

    Exit codes: 0 added, 3 refused, 4 no controller answers, 5 no such job.
    """
    request = pb.AddWorkersRequest(name=name, hosts=hosts)
    _show_job(call_controller(where, lambda s: s.AddWorkers(request, timeout=30)), as_json)


@app.command()
@reaches_controller
def explain(
    where: ControllerOptions,
    name: JobArgument,
    as_json: AsJson = False,
) -> None:
    """Explain what a job does or waits for, from its state and the switches' counters.

    Exit codes: 0 explained, 4 no controller answers, 5 no such job.
    """
    answer = call_controller(where, lambda s: s.ExplainJob(pb.JobName(name=name), timeout=30))
    if as_json:
        print_json(list(answer.steps))
        return
    for number, step in enumerate(answer.steps, 1):
        typer.echo(f"{number}. {step}")


@app.command()
@reaches_controller
def debug(
    where: ControllerOptions,
    name: JobArgument,
    as_json: AsJson = False,
) -> None:
    """Name the rank, host, switch or link that holds a job up, then the evidence. Takes some seconds.

    Exit codes: 0 answered, 4 no controller answers, 5 no such job.
    """
    answer = call_controller(where, lambda s: s.DebugJob(pb.JobName(name=name), timeout=60))
    if as_json:
        print_json(json.loads(answer.document_json))
        return
    typer.echo(answer.finding)
    for line in answer.evidence:
        typer.echo(f"  {line}")


@app.command()
@reaches_controller
def watch(
    where: ControllerOptions,
    name: JobArgument,
    as_json: AsJson = False,
) -> None:
    """Print a line (with --json an object) at each change of a job, until it has ended.

    Exit codes: 0 done, 4 no controller answers, 5 no such job, 6 failed or canceled.
    """

    async def watched(stub: pb_grpc.ControllerStub) -> pb.Job:
        answer = pb.Job()
        async for answer in stub.WatchJob(pb.JobName(name=name)):
            if as_json:
                typer.echo(json.dumps(_job_document(answer)))
            else:
                typer.echo(job_line(answer))
        return answer

    if call_controller(where, watched).state != pb.DONE:
        raise typer.Exit(JOB_FAILED)


@app.command()
@reaches_controller
def cancel(
    where: ControllerOptions,
    name: JobArgument,
    as_json: AsJson = False,
) -> None:
    """Cancel a job. Its members are notified at once; its entries and slots are freed. A job that has ended stays as it
    is.

    Exit codes: 0 ended, 4 no controller answers, 5 no such job.
    """
    before = call_controller(where, lambda s: s.GetJob(pb.JobName(name=name), timeout=10))
    if before.state in _TERMINAL:
        how = pb.JobState.Name(before.state).lower()
        note(f"nothing is canceled: job '{name}' has ended already ({how})")
    _show_job(
        call_controller(where, lambda s: s.CancelJob(pb.CancelJobRequest(name=name), timeout=10)), as_json
    )


@app.command()
@reaches_controller
def replan(
    where: ControllerOptions,
    jobs: Annotated[list[str] | None, typer.Argument(help="Jobs to replan; default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Replan running jobs on the present state, and migrate those that gain, in a new epoch.

    Exit codes: 0 replanned (prints the jobs that migrated), 4 no controller answers, 5 no such job.
    """
    answer = call_controller(where, lambda s: s.Replan(pb.ReplanRequest(jobs=jobs or []), timeout=600))
    if as_json:
        print_json({"moved": list(answer.moved)})
    else:
        typer.echo("moved: " + (", ".join(answer.moved) or "none"))


@app.command()
@reaches_controller
def slot(
    where: ControllerOptions,
    job: JobArgument,
    switch: Annotated[str, typer.Argument(help="A switch that adds up for the job.")],
    number: Annotated[
        int, typer.Argument(metavar="SLOT", min=0, max=65535, help="Slot of the tree, from 0.")
    ],
    tree: Annotated[
        int, typer.Option(min=0, help="Tree of the job; 0: its first one at the switch.", show_default=False)
    ] = 0,
    lanes: Annotated[int, typer.Option(min=0, help="Lanes to show.")] = 8,
    as_json: AsJson = False,
) -> None:
    """Read a slot: the chunk that it holds, the children whose contributions are in, flags, exponent and sums.

    The controller sends a READ packet into the switch (docs/reference/protocol.md, section 3.6), which changes nothing.

    Exit codes: 0 read, 2 no such slot, 4 no controller answers, 5 no such job, 6 the switch does not answer.
    """
    request = pb.ReadSlotRequest(switch=switch, job=job, slot=number, tree=tree)
    contents = call_controller(where, lambda stub: stub.ReadSlot(request, timeout=10))
    if as_json:
        print_json(plain(contents))
        return
    for line in _slot_lines(contents, switch, job, number, lanes):
        typer.echo(line)


def jobs_table(jobs: Iterable[pb.Job]) -> Table:
    """A line a job. The reason is cut to the width of the terminal before anything else is."""
    whole: dict[str, Any] = {"no_wrap": True}
    columns = [Column(name, **whole) for name in ("job", "state", "epoch", "scheme", "rate", "connected")]
    table = Table(*columns, "reason", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for row in jobs:
        plan = plan_of(row)
        rate = f"{plan['rate']:.4g} {plan['unit']}" if plan else ""
        state = pb.JobState.Name(row.state).lower()
        reason = Text(headline(row.reason), no_wrap=True, overflow="ellipsis")
        table.add_row(
            row.name, state, str(row.epoch), plan.get("algorithm", ""), rate, connected_members(row), reason
        )
    return table


def _job_document(answer: pb.Job) -> dict[str, Any]:
    document = plain(answer)
    del document["plan_json"]
    return {**document, "state": document["state"].lower(), "plan": plan_of(answer) or None}


def _show_job(answer: pb.Job, as_json: bool) -> None:
    note_standby(answer.standby_of)
    if as_json:
        print_json(_job_document(answer))
        return
    for line in job_lines(answer):
        typer.echo(line)


def _slot_lines(contents: pb.SlotContents, switch: str, job: str, number: int, lanes: int) -> Iterator[str]:
    where = f"{switch}, job {job}, tree {contents.tree}, slot {number} (register {contents.register})"
    if not contents.epoch:
        yield f"{where}: no packet has claimed it"
        return
    chunk = contents.round * contents.slots + number
    yield f"{where}: chunk {chunk} (epoch {contents.epoch}, round {contents.round})"
    yield f"  contributions: {', '.join(contents.contributors) or 'none'}"
    yield f"  missing: {', '.join(contents.missing) or 'none'}"
    flags = [name for name in ("overflow", "congestion") if getattr(contents, name)]
    yield f"  flags: {', '.join(flags) or 'none'}; exponent {contents.exponent}"
    shown = contents.lanes[:lanes]
    more = len(contents.lanes) - len(shown)
    yield f"  lanes: {' '.join(map(str, shown))}" + (f" ... ({more} more)" if more else "")
