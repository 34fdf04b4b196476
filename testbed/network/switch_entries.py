# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold network entries`: entries of a running switch in the names of its program, read over P4Runtime without a
session."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import finsy as fy
import grpc
import typer
from finsy.proto import p4i, p4r, p4r_grpc
from rich.console import Console
from rich.markup import escape

from netfold.protocol.runtime import DEFAULT_NAME
from netfold.testbed.network.errors import NetworkError, UnknownElementError
from netfold.testbed.network.isolation import enter_network
from netfold.testbed.network.options import NameOption
from netfold.testbed.network.processes import open_channel
from netfold.testbed.network.state import RunDirectory
from netfold.topologies.cli import AsJson, new_table, one_line_errors

_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class DecodedEntry:
    """`match` and `action` in the names of the program, as in `port=0x1` and `set_neighbor(port=0x2)`."""

    table: str
    match: str
    action: str
    priority: int = 0
    is_default: bool = False
    is_const: bool = False


def read_entries(switch: str, address: str, device_id: int, table: str = "") -> list[DecodedEntry]:
    """Read the entries of one table, or of all, ordered by table and match. Raises NetworkError, or
    UnknownElementError for the table."""
    with open_channel(address) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        try:
            schema = fy.P4Schema(read_p4info(stub, device_id))
            names = [t.alias for t in schema.tables] if not table else [_known(schema, switch, table)]
            return [entry for name in names for entry in _read(stub, device_id, schema, name)]
        except grpc.RpcError as error:
            raise NetworkError(f"switch '{switch}' at {address}: {error.details()}") from error


def read_p4info(stub: p4r_grpc.P4RuntimeStub, device_id: int) -> p4i.P4Info:
    """Returns that of the running program. Raises grpc.RpcError."""
    answer = stub.GetForwardingPipelineConfig(
        p4r.GetForwardingPipelineConfigRequest(
            device_id=device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.P4INFO_AND_COOKIE,
        ),
        timeout=_TIMEOUT_S,
    )
    return answer.config.p4info


def _known(schema: fy.P4Schema, switch: str, table: str) -> str:
    names = {name: t.alias for t in schema.tables for name in (t.alias, t.name)}
    if table not in names:
        raise UnknownElementError(f"table of switch '{switch}'", table, sorted(set(names.values())))
    return names[table]


def _read(stub: Any, device_id: int, schema: fy.P4Schema, table: str) -> list[DecodedEntry]:
    kinds = (fy.P4TableEntry(table), fy.P4TableEntry(table, is_default_action=True))
    request = p4r.ReadRequest(device_id=device_id, entities=[kind.encode(schema) for kind in kinds])
    found = [
        _entry(fy.P4TableEntry.decode(one, schema), schema)
        for answer in stub.Read(request, timeout=_TIMEOUT_S)
        for one in answer.entities
    ]
    return sorted(found, key=lambda e: (e.is_default, -e.priority, e.match))


def _entry(found: fy.P4TableEntry, schema: fy.P4Schema) -> DecodedEntry:
    return DecodedEntry(
        found.table_id,
        found.match_str(schema, wildcard="any"),
        found.action_str(schema),
        found.priority,
        found.is_default_action,
        found.is_const,
    )


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
