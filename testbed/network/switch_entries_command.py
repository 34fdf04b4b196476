# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold network entries`: the table entries of a switch."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from netfold.protocol.runtime import DEFAULT_NAME
from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.isolation import enter_network
from netfold.testbed.network.options import NameOption
from netfold.testbed.network.state import RunDirectory
from netfold.testbed.network.switch_entries import read_entries
from netfold.topologies.cli import AsJson, new_table, one_line_errors


@one_line_errors(NetworkError)
def entries(
    switch: Annotated[str, typer.Argument(metavar="SWITCH")],
    table: Annotated[str, typer.Argument(metavar="TABLE", help="Default: all tables.")] = "",
    as_json: AsJson = False,
    name: NameOption = DEFAULT_NAME,
) -> None:
    """Show the table entries of a switch, with the names of its program.

    Exit codes: 0 shown, 1 no such network, switch or table, or no answer."""
    enter_network(name)
    found = RunDirectory(name).up().switch(switch)
    rows = read_entries(switch, found.grpc_address, found.device_id, table)
    if as_json:
        typer.echo(json.dumps([asdict(row) for row in rows], indent=1))
        return
    shown = new_table(f"entries of {switch}", "table", "match", "priority", "action")
    for row in rows:
        match = "default" if row.is_default else row.match
        shown.add_row(row.table, escape(match), str(row.priority or ""), escape(row.action))
    Console().print(shown)
