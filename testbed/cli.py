# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run` and `netfold doctor`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from netfold.protocol.option_groups import expand_groups
from netfold.protocol.runtime import DEFAULT_NAME
from netfold.testbed.errors import ProgramSourcesError, RunError
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import run_isolated
from netfold.testbed.network.modes import NetworkMode
from netfold.testbed.network.options import ModeOption, NameOption
from netfold.testbed.web_page import page_socket
from netfold.topologies.cli import BAD_INPUT, FabricArgument, fail
from netfold.traffic.workloads import HIDDEN_UNITS

run = typer.Typer(add_completion=False)
doctor = typer.Typer(add_completion=False)

SIGNALED, INTERRUPTED = 128, 130
"""Exit codes: SIGNALED plus the number of the signal."""


@dataclass(frozen=True)
class NetworkOptions:
    """The network and its switches."""

    PANEL = "Network"

    fabric: FabricArgument = "leaf-spine-2x2"
    target: Annotated[
        str,
        typer.Option(
            help="Switch target: softswitch, bmv2, tofino-model (docs/how-to/tofino.md) or auto "
            "(softswitch if it can run)."
        ),
    ] = "auto"
    program: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Program of tofino-model, from netfold.p4src.tools.tofino."),
    ] = None
    lanes: Annotated[
        int | None,
        typer.Option(
            help="Lanes of a packet: 32, 64, 256 or 512; default: the maximum, up to 256 (bmv2: 512), of a program "
            "for the fabric's children."
        ),
    ] = None
    scale: Annotated[
        float | None, typer.Option(help="Factor from the fabric's rates to rates on the wire.")
    ] = None
    name: NameOption = DEFAULT_NAME
    network: ModeOption = NetworkMode.AUTO


@dataclass(frozen=True)
class RunWorkloadOptions:
    """The jobs of the run."""

    PANEL = "Workload"

    scheme: Annotated[str, typer.Option("--scheme", "-s", help="Planner; see `netfold plan --help`.")] = (
        "panama"
    )
    epochs: Annotated[int, typer.Option(min=1, help="Training epochs: passes over the training images.")] = 12
    hidden: Annotated[int, typer.Option(min=1, help="Hidden units of the perceptron.")] = HIDDEN_UNITS
    size: Annotated[int, typer.Option(min=4, help="Size of the larger arrays, bytes.")] = 1 << 20
    iterations: Annotated[int, typer.Option(min=1, help="All-reduces of the larger arrays.")] = 8
    ring: Annotated[bool, typer.Option(help="Compare with a TCP ring over the same links.")] = True
    fast_mbps: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="MBPS", help="Reduce the larger arrays once more, over links of this rate, Mbit/s."
        ),
    ] = None


@dataclass(frozen=True)
class TimeoutOptions:
    """Timeouts of the run."""

    PANEL = "Timeouts"

    timeout: Annotated[
        float | None,
        typer.Option(min=1, help="Timeout of each step, seconds.", show_default="120; 2700 for tofino-model"),
    ] = None
    call_timeout: Annotated[
        float | None,
        typer.Option(
            min=0.01, help="Timeout of one all-reduce, seconds.", show_default="60; 900 for tofino-model"
        ),
    ] = None


@dataclass(frozen=True)
class FaultOptions:
    """Faults injected into the run."""

    PANEL = "Faults"

    loss: Annotated[float, typer.Option(help="Probability of losing a frame, on every link, 0 to 1.")] = 0.0
    restart: Annotated[
        str | None, typer.Option(metavar="SWITCH", help="Kill and restart this switch during the training.")
    ] = None


@run.command()
@expand_groups
def run_command(
    network: NetworkOptions,
    workload: RunWorkloadOptions,
    timeouts: TimeoutOptions,
    faults: FaultOptions,
    out: Annotated[Path, typer.Option(help="Folder of run.json, recording.jsonl and fabric.png.")] = Path(
        "out"
    ),
    web: Annotated[bool, typer.Option("--web", help="Serve a live page during the run.")] = False,
    web_port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of that page on 127.0.0.1; 0: a free one.")
    ] = 8090,
) -> None:
    """Train a real model through the switches of a fabric, and show the results.

    Starts the fabric in Mininet and the controller, trains handwritten-digit recognition data-parallel on all workers,
    reduces larger arrays to measure the links, repeats both as a TCP ring, and compares. Writes run.json,
    recording.jsonl and fabric.png.

    Exit codes: 0 all sums are right, 1 an error (one line explains it) or a wrong element, 2 a bad fabric,
    130 interrupted.
    """
    try:
        page = page_socket(web_port) if web else None
        # Before the imports below, which take long.
        mode = run_isolated(network.name, network.network, allow_userland=True)
    except (NetworkError, RunError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)

    from netfold.testbed.fault_injection import FaultInjection
    from netfold.testbed.run import Run, RunObserver, RunOptions
    from netfold.testbed.testbed import Testbed
    from netfold.topologies.cli import BAD_INPUT, FAILED, fail
    from netfold.topologies.fabric import FabricError

    console = Console()

    class Display(RunObserver):
        step = "before the network was up"

        def on_step(self, text: str) -> None:
            self.step = text
            console.print(f"[dim]{text}[/dim]")
            bars.update(bar, description=text, completed=0)

        def on_progress(self, fraction: float, text: str) -> None:
            bars.update(bar, description=text, completed=fraction)

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    display = Display()
    executed: Run | None = None
    try:
        with Progress(*columns, console=console, transient=True) as bars:
            bar = bars.add_task("", total=1.0)
            testbed = partial(
                Testbed,
                network.fabric,
                target=network.target,
                lanes=network.lanes,
                scale=network.scale,
                name=network.name,
                program=network.program,
                call_timeout_s=timeouts.call_timeout,
                mode=mode,
            )
            options = RunOptions(
                testbed,
                workload.scheme,
                workload.epochs,
                workload.size,
                workload.iterations,
                workload.ring,
                timeouts.timeout,
                out,
                FaultInjection(faults.loss, faults.restart),
                workload.hidden,
                page,
                workload.fast_mbps,
            )
            executed = Run(options, display)
            report = executed.execute()
            bars.console.print(report.render())
            executed.write(report)
    except (KeyboardInterrupt, SystemExit) as ending:
        code = ending.code if isinstance(ending, SystemExit) else INTERRUPTED
        if not isinstance(code, int) or code < SIGNALED:
            raise
        fail(f"interrupted ({display.step}): the network is down, and no file was written", code)
    except FabricError as error:
        fail(str(error), BAD_INPUT)
    except ProgramSourcesError as error:  # whatever the load of this machine
        fail(str(error), FAILED)
    except (RunError, NetworkError, OSError) as error:
        notes = "" if executed is None else executed.failure_notes()
        fail(f"{error}{f' ({notes})' if notes else ''}", FAILED)
    console.print(
        f"{report.seconds:.0f} s in total; wrote {out / 'run.json'}, {out / 'fabric.png'} and fabric.svg"
    )
    console.print(f"`netfold replay {out / 'recording.jsonl'}` shows it again")
    sys.exit(0 if report.wrong_elements == 0 and report.identical else 1)


@doctor.command()
def doctor_command(
    context: typer.Context,
    deploy: Annotated[
        bool,
        typer.Option("--deploy", help="Check that this server is as `netfold deploy switch` has set it up."),
    ] = False,
) -> None:
    """Show the programs and packages that netfold uses, and how to install missing ones.

    Exit codes: 0 all required ones are present, 1 one is missing, 2 no switch is deployed."""
    from netfold.controller.operator.server_cards import ServerMachine
    from netfold.controller.operator.server_plan import ServerError
    from netfold.testbed.deployed_switch import examine_switch, switch_verdict
    from netfold.testbed.doctor import examine, verdict

    try:
        findings = examine_switch(context.obj or ServerMachine()) if deploy else examine()
    except ServerError as error:
        fail(str(error), BAD_INPUT)
    table = Table.grid(padding=(0, 2))
    for finding in findings:
        mark = (
            "[green]ok[/green]"
            if finding.found
            else "[red]missing[/red]"
            if not finding.ok
            else "[yellow]-[/yellow]"
        )
        # netfold[torch] is no markup
        table.add_row(
            mark, escape(finding.name), escape(finding.found or f"{finding.purpose}: {finding.remedy}")
        )
    console = Console()
    console.print(table)
    console.print(f"\n{escape((switch_verdict if deploy else verdict)(findings))}")
    sys.exit(0 if all(f.ok for f in findings) else 1)
