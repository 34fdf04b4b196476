# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold measure`: a command for each measurement. Each lies in a folder of its own, whose cli.py imports what it
needs when it is called."""

from __future__ import annotations

import typer

from netfold.measure.arrivals.cli import arrivals
from netfold.measure.balance.cli import balance
from netfold.measure.fairness.cli import fairness
from netfold.measure.plans.cli import plans
from netfold.measure.quorum.cli import quorum
from netfold.measure.reroute.cli import reroute

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Measure on this machine, in Mininet: figures as a table, as JSON, as a picture.",
)

for measurement in (plans, reroute, fairness, balance, arrivals, quorum):
    app.command()(measurement)
app.callback()(lambda: None)  # a group also with one command
