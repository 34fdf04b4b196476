# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold plan`: plan a job on a fabric and show rate, bound, trees and loads."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import grpc
import typer
from rich.console import Console
from rich.table import Table

from netfold.controller.drawing.options import ThemeOption
from netfold.controller.drawing.palette import Theme
from netfold.controller.jobs.lookup import ExampleJob, default_job, job_keys, load_job
from netfold.controller.operator.controller_client import call_controller, note
from netfold.controller.planning.candidate_paths import Limits
from netfold.controller.planning.document import plan_document, plan_from_document
from netfold.controller.planning.hierarchy import Hierarchy
from netfold.controller.planning.pipes import loopback_rate
from netfold.controller.planning.plan import Plan, PlanningError
from netfold.controller.planning.planner import full_nodes, make_plan
from netfold.controller.planning.scheme_registry import SCHEMES
from netfold.controller.recording.lines import (
    RecordingSource,
    StateSection,
    fabric_line,
    plan_row,
    state_line,
)
from netfold.controller.recording.recording_file import RecordingError, write_recording
from netfold.controller.scheduling.job_planner import cap_rate
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.options import ControllerOptions, reaches_controller
from netfold.topologies.children import beyond_programs
from netfold.topologies.cli import AsJson, FabricArgument
from netfold.topologies.fabric import Fabric, FabricError
from netfold.topologies.spec import load_fabric

app = typer.Typer(add_completion=False)

BAD_INPUT, NO_PLAN = 2, 3
ANSWER_S = 150
"""Longer than the deadline of a plan, and the plans ahead of it."""
FILE_WIDTH = 140
GAIN = 1.01
"""A factor of the rate: a smaller gain is not worth a word."""


@app.command()
@reaches_controller
def plan(
    where: ControllerOptions,
    fabric: FabricArgument,
    job: Annotated[
        str | None,
        typer.Argument(help="A job's YAML file or an example's name; default: the fabric's example."),
    ] = None,
    scheme: Annotated[
        str | None, typer.Option("--scheme", "-s", help="In place of the job's: " + ", ".join(SCHEMES))
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of all random choices; default: the job's.")
    ] = None,
    roundings: Annotated[
        int | None, typer.Option(min=1, max=10_000, help="How many roundings are drawn.")
    ] = None,
    as_json: AsJson = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the plan to this file (.png, .svg, .pdf).")] = None,
    theme: ThemeOption = Theme.LIGHT,
    compare: Annotated[
        bool, typer.Option("--compare", help="Plan by every scheme and print one table.")
    ] = False,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the plans to this file; `netfold replay` shows two side by side."
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="By the controller, on what its jobs and the traffic of others leave of the fabric now.",
        ),
    ] = False,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ELEMENT", help="With --live: avoid this switch, link or host; may be repeated."
        ),
    ] = None,
) -> None:
    """Decide where a job's gradients are added up, and show at what rate its workers can send.

    Exit codes: 0 planned, 2 bad fabric, job or option, 3 no plan (the message names the resource that binds), 4 no
    controller answers (--live).
    """
    errors = Console(stderr=True)
    try:
        if compare and plot is not None:
            raise _BadOptionError("--plot draws one plan; leave --compare out")
        known = load_fabric(fabric)
        example = _with_options(
            default_job(known) if job is None else load_job(job, known), scheme, roundings
        )
        if seed is not None:
            example = replace(example, seed=seed)
        if without and not live:
            raise _BadOptionError("--without is for --live: the controller leaves the elements out")
        planner = partial(_planned, known, example)
        if live:
            keys = _keys(job_keys(job, known), example, scheme, seed, roundings)
            planner = partial(_live_plan, where, known, example, keys, without or [])
        if compare:
            _compare(known, planner, as_json, record)
        else:
            made = planner(example.spec.scheme)
            if not live and (limit := _child_limit(known, example, made)):
                note(limit)
            _show(known, made, as_json, plot, theme, record)
        if beyond := beyond_programs(known):
            note(beyond)
    except (FabricError, _BadOptionError) as error:
        errors.print(f"netfold plan: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from None
    except PlanningError as error:
        errors.print(f"netfold plan: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(NO_PLAN) from None


class _BadOptionError(Exception):
    pass


def _with_options(example: ExampleJob, chosen: str | None, roundings: int | None) -> ExampleJob:
    scheme = chosen or example.spec.scheme
    if scheme not in SCHEMES:
        raise _BadOptionError(f"scheme '{scheme}' is unknown; there are {', '.join(SCHEMES)}")
    options = dict(example.spec.options)
    if roundings is not None:
        options["roundings"] = roundings
    return replace(example, spec=replace(example.spec, scheme=scheme, options=options))


def _keys(
    keys: dict[str, Any], example: ExampleJob, scheme: str | None, seed: int | None, roundings: int | None
) -> dict[str, Any]:
    """The keys of the job's file, with what the options change."""
    changed = {"scheme": scheme, "seed": seed, "options": example.spec.options if roundings else None}
    return keys | {key: value for key, value in changed.items() if value is not None}


def _live_plan(
    where: ControllerOptions,
    fabric: Fabric,
    example: ExampleJob,
    keys: dict[str, Any],
    without: list[str],
    scheme: str,
) -> Plan:
    """The plan that the controller makes. Raises PlanningError if it has none, and _BadOptionError for a plan on
    another fabric."""
    spec = json.dumps({**keys, "scheme": scheme})
    request = pb.PlanJobRequest(spec_yaml=spec, source=example.spec.name, without=without)

    async def plan_job(stub: pb_grpc.ControllerStub) -> pb.JobPlan | str:
        try:
            plan: pb.JobPlan = await stub.PlanJob(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED:
                raise
            return error.details() or ""
        return plan

    answer = call_controller(where, plan_job)
    if isinstance(answer, str):
        raise PlanningError(answer)
    made = plan_from_document(json.loads(answer.plan_json))
    known = {frozenset((k.a, k.b)) for k in fabric.links}
    if strange := [link for link in made.loads.links if frozenset(link) not in known]:
        raise _BadOptionError(
            f"--live: the controller has a link {'-'.join(strange[0])}, which fabric '{fabric.name}' has not; "
            "name the fabric that the controller runs"
        )
    return replace(made, published=example.published.get(made.algorithm))


def _planned(fabric: Fabric, example: ExampleJob, scheme: str) -> Plan:
    """As it would be admitted on an empty fabric. Raises PlanningError."""
    made = make_plan(fabric, replace(example.spec, scheme=scheme), seed=example.seed)
    made = replace(made, published=example.published.get(made.algorithm))
    if example.min_rate is not None and made.rate < example.min_rate * (1 - 1e-9):
        raise PlanningError(
            f"job '{example.spec.name}' would get {made.rate:g} {made.unit}, below its min_rate {example.min_rate:g}"
        )
    return made if example.rate is None else cap_rate(made, example.rate)


def _child_limit(fabric: Fabric, example: ExampleJob, made: Plan) -> str:
    """A sentence if the plan were faster with more children of a node than switches take. Else empty."""
    limit = full_nodes(fabric, made)
    if not limit:
        return ""
    try:
        free = Limits(fan_in=len(example.spec.workers))
        wide = make_plan(fabric, example.spec, seed=example.seed, limits=free)
    except PlanningError:
        return ""
    rate = wide.rate if example.rate is None else min(wide.rate, example.rate)
    return f"{limit}; without this limit the rate is {rate:g} {made.unit}" if rate > made.rate * GAIN else ""


def _show(
    fabric: Fabric, made: Plan, as_json: bool, plot: Path | None, theme: Theme, record: Path | None
) -> None:
    _record(record, fabric, {made.algorithm: made})
    if plot is not None:
        from netfold.controller.drawing.fabric_picture import fabric_plot
        from netfold.controller.drawing.plot import save

        try:
            save(fabric_plot(fabric, made), plot, theme)
        except (OSError, ValueError) as error:
            raise _BadOptionError(f"--plot {plot}: {error}") from error
    if as_json:
        typer.echo(json.dumps(plan_document(fabric, made), indent=2))
        return
    console = _console()
    console.print(_summary([(made.algorithm, made)]))
    if made.hierarchy is not None:
        console.print(_ways(made, made.hierarchy))
        console.print(made.hierarchy.why(made.rate), markup=False, highlight=False)
    console.print(_trees(made))
    console.print(_loads(fabric, made))


def _console() -> Console:
    return Console() if sys.stdout.isatty() else Console(width=FILE_WIDTH)


def _record(file: Path | None, fabric: Fabric, plans: Mapping[str, Plan | str]) -> None:
    """Writes the plans by scheme; a text is the reason why there is none."""
    if file is None:
        return
    rows = {n: {"error": p} if isinstance(p, str) else plan_row(p) for n, p in plans.items()}
    try:
        write_recording(
            file,
            [
                fabric_line(fabric, RecordingSource.PLANNER),
                state_line(time.time(), {StateSection.PLANS: rows}),
            ],
        )
    except RecordingError as error:
        raise _BadOptionError(f"--record: {error}") from error


def _compare(fabric: Fabric, planner: Callable[[str], Plan], as_json: bool, record: Path | None) -> None:
    rows: list[tuple[str, Plan | str]] = []
    for name in SCHEMES:
        try:
            rows.append((name, planner(name)))
        except PlanningError as error:
            rows.append((name, str(error)))
    _record(record, fabric, dict(rows))
    if as_json:
        found = [
            {"scheme": n, "error": p} if isinstance(p, str) else {"scheme": n, **plan_document(fabric, p)}
            for n, p in rows
        ]
        typer.echo(json.dumps(found, indent=2))
    else:
        _console().print(_summary(rows))
        for name, made in rows:
            if isinstance(made, str):
                typer.echo(f"{name}: {made}")


def _summary(rows: list[tuple[str, Plan | str]]) -> Table:
    table = Table()
    heads = ("scheme", "rate", "unit", "bound", "gap", "before repair", "published", "trees", "solve")
    for head in heads:
        table.add_column(head, justify="left" if head in ("scheme", "unit") else "right")
    for name, made in rows:
        if isinstance(made, str):
            table.add_row(name, *["-"] * (len(heads) - 1))
            continue
        shown = name if name == made.algorithm else f"{name} ({made.algorithm})"
        gap = "-" if made.gap is None else f"{made.gap:.1%}"
        numbers = (made.bound, made.rounded_rate, made.published)
        bound, rounded, published = ("-" if n is None else f"{n:.6g}" for n in numbers)
        table.add_row(
            shown, f"{made.rate:.6g}", made.unit, bound, gap, rounded, published, str(len(made.trees)),
            f"{made.solve_s * 1e3:.0f} ms",
        )  # fmt: skip
    return table


def _ways(made: Plan, hierarchy: Hierarchy) -> Table:
    table = Table(title="Ranks of a host")
    table.add_column("reduction")
    table.add_column("all-reduce", justify="right")
    best = hierarchy.chosen(made.rate)
    for way in hierarchy.ways(made.rate):
        table.add_row(way.text, way.shown, style="bold" if way == best else None)
    return table


def _trees(made: Plan) -> Table:
    table = Table(title="Trees")
    for head in ("tree", "root", "share", "node", "children"):
        table.add_column(head)
    for number, tree in enumerate(made.trees):
        for i, node in enumerate(reversed(tree.nodes)):
            first = (str(number), tree.root, f"{tree.share:.4g}") if i == 0 else ("", "", "")
            table.add_row(*first, node, " ".join(tree.children(node)))
    return table


def _loads(fabric: Fabric, made: Plan) -> Table:
    table = Table(title="Loads, the fullest first")
    for head in ("resource", "load", "capacity", "used"):
        table.add_column(head, justify="left" if head == "resource" else "right")
    rows = [(f"link {a}->{b}", load, fabric.link(a, b).rate) for (a, b), load in made.loads.links.items()]
    rows += [(f"switch {v}", load, fabric.switch(v).capacity) for v, load in made.loads.switches.items()]
    rows += [(f"PS {s}", load, fabric.ingress_capacity(s)) for s, load in made.loads.servers.items()]
    rows += [
        (f"loopback {p} of {s}", load, loopback_rate(fabric, s, p))
        for (s, p), load in made.loads.loopbacks.items()
    ]
    rows.sort(key=lambda r: -r[1] / r[2])
    for name, load, capacity in rows[:30]:
        table.add_row(name, f"{load:.4g}", f"{capacity:.4g}", f"{load / capacity:.0%}")
    if len(rows) > 30:
        table.caption = f"{len(rows) - 30} more in --json"
    return table
