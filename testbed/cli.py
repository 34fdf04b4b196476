# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run` and `netfold doctor`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from netfold.traffic.workloads import HIDDEN_UNITS

run = typer.Typer(add_completion=False)
doctor = typer.Typer(add_completion=False)

_RUN_HELP = """Train a real model through the switches of a fabric, and show what happened.

Brings up the fabric in Mininet, starts the controller, trains handwritten-digit recognition data-parallel over all
workers, reduces larger arrays for the links' sake, does both again as a TCP ring, and compares. Writes run.json and
fabric.png. Exit codes: 0 done and every sum right, 1 something failed (one line says what) or an element was wrong."""


@run.command(help=_RUN_HELP)
def run_command(
    fabric: Annotated[
        str, typer.Option(help="A fabric's YAML file, or the name of a spec of netfold.")
    ] = "leaf-spine-2x2",
    target: Annotated[
        str,
        typer.Option(
            help="The switches: softswitch, bmv2, tofino-model (docs/tofino.md), or auto: softswitch where it can run."
        ),
    ] = "auto",
    program: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Of tofino-model: what tools.tofino made of the program."),
    ] = None,
    scheme: Annotated[str, typer.Option(help="The planner; see `netfold plan --help`.")] = "panama",
    lanes: Annotated[int, typer.Option(help="Lanes of a packet: 32, 64 or 256.")] = 256,
    scale: Annotated[
        float | None, typer.Option(help="Rates on the wire over those of the fabric's file.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the training images.")] = 12,
    hidden: Annotated[int, typer.Option(min=1, help="The perceptron's hidden units.")] = HIDDEN_UNITS,
    size: Annotated[int, typer.Option(min=4, help="Bytes of the larger arrays.")] = 1 << 20,
    iterations: Annotated[int, typer.Option(min=1, help="How often the larger arrays are reduced.")] = 8,
    ring: Annotated[bool, typer.Option(help="Compare with a TCP ring over the same links.")] = True,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=1, help="Seconds that each step may take.", show_default="120; of tofino-model 2700"
        ),
    ] = None,
    call_timeout: Annotated[
        float | None,
        typer.Option(min=0.01, help="Seconds of one all-reduce.", show_default="60; of tofino-model 900"),
    ] = None,
    loss: Annotated[
        float, typer.Option(help="Lose frames at random on all links, with this probability (0 to 1).")
    ] = 0.0,
    restart: Annotated[
        str | None,
        typer.Option(metavar="SWITCH", help="Kill this switch under the training, and start it again."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for run.json and fabric.png.")] = Path("out"),
) -> None:
    from netfold.testbed.deployment import Setup
    from netfold.testbed.disturbance import Disturbance
    from netfold.testbed.errors import RunError
    from netfold.testbed.run import Options, Run, Watcher
    from netfold.topologies.fabric import FabricError
    from netfold.topologies.network.caller import become_root
    from netfold.topologies.network.errors import NetworkError

    console = Console()

    class Display(Watcher):
        def step(self, text: str) -> None:
            console.print(f"[dim]{text}[/dim]")
            bars.update(bar, description=text, completed=0)

        def progress(self, fraction: float, text: str) -> None:
            bars.update(bar, description=text, completed=fraction)

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    try:
        become_root()
        with Progress(*columns, console=console, transient=True) as bars:
            bar = bars.add_task("", total=1.0)
            setup = Setup(fabric, target, lanes, scale, program=program, call_s=call_timeout)
            disturbance = Disturbance(loss, restart)
            options = Options(
                setup, scheme, epochs, size, iterations, ring, timeout, out, disturbance, hidden
            )
            run = Run(options, Display())
            report = run.execute()
            bars.console.print(report.render())
            run.write(report)
    except (RunError, NetworkError, FabricError, OSError) as error:
        typer.echo(f"netfold: {error}", err=True)
        sys.exit(1)
    console.print(f"{report.seconds:.0f} s in all; {out / 'run.json'} and {out / 'fabric.png'} are written")
    sys.exit(0 if report.wrong_elements == 0 and report.identical else 1)


@doctor.command()
def doctor_command() -> None:
    """Show what this machine has of what netfold can use, and how to get the rest.

    Exit codes: 0 nothing that is required is missing, 1 something is."""
    from netfold.testbed.doctor import Need, examine

    findings = examine()
    table = Table(title="netfold doctor")
    for column in ("", "what", "for", "found, or how to get it"):
        table.add_column(column, overflow="fold")
    for finding in findings:
        mark = (
            "[green]ok[/green]"
            if finding.found
            else "[red]missing[/red]"
            if not finding.ok
            else "[yellow]-[/yellow]"
        )
        need = "" if finding.need is Need.REQUIRED else " (optional)"
        table.add_row(mark, f"{finding.name}{need}", finding.purpose, finding.found or finding.remedy)
    Console().print(table)
    sys.exit(0 if all(f.ok for f in findings) else 1)
