# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold fabric diff`, `apply` and `pin`: the fabric in use and a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from netfold.controller.operator.controller_client import (
    BAD_INPUT,
    REFUSED,
    call_controller,
    fail,
    plain,
    print_json,
)
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing
from netfold.protocol.options import AsJson, ControllerOptions, reaches_controller
from netfold.topologies.address_assignment import numbered
from netfold.topologies.cli import FabricArgument
from netfold.topologies.fabric import FabricError
from netfold.topologies.pinning import pinned_text
from netfold.topologies.spec import fabric_from_spec, load_fabric, spec_file
from netfold.topologies.yaml_locations import read_text

diff, apply, pin = (typer.Typer() for _ in range(3))

CHANGE_S = 120.0
"""Seconds that the controller may take to read and compare a large file."""


@diff.command()
@reaches_controller
def _diff(where: ControllerOptions, fabric: FabricArgument, as_json: AsJson = False) -> None:
    """Compare the fabric in use with a file: each change, the jobs that use the element, and what is refused.

    Exit codes: 0 can be applied, 2 bad file, 3 a change is refused, 4 no controller answers.
    """
    _show(_change(where, fabric, dry_run=True), as_json=as_json)


@apply.command()
@reaches_controller
def _apply(where: ControllerOptions, fabric: FabricArgument, as_json: AsJson = False) -> None:
    """Change the fabric in use to that of a file. Jobs go on; a change is refused while a job uses what goes or gives
    less, and then nothing is applied.

    Exit codes: 0 applied or the same, 2 bad file, 3 a change is refused, 4 no controller answers.
    """
    _show(_change(where, fabric, dry_run=False), as_json=as_json)


@pin.command()
@reaches_controller
def _pin(
    where: ControllerOptions,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file of a fabric.")],
    is_offline: Annotated[
        bool, typer.Option("--offline", help="Without a controller: as a first controller would number it.")
    ] = False,
) -> None:
    """Write the addresses, prefixes, loopbacks, device ids and ports of the fabric in use into its file. Comments and
    the order stay.

    Exit codes: 0 written, 2 bad file, 4 no controller answers.
    """
    try:
        text = read_text(file)
        if is_offline:
            full = numbered(load_fabric(file))
        else:
            full = fabric_from_spec(_change(where, str(file), dry_run=True).spec_json)
        changed = pinned_text(text, str(file), full)
        if changed == text:
            typer.echo(f"{file} has all numbers")
        else:
            _write(file.resolve(), changed)
            typer.echo(f"{file}: numbers of {len(full.switches)} switches and {len(full.hosts)} hosts")
    except FabricError as error:
        fail(BAD_INPUT, str(error))
    except OSError as error:
        fail(BAD_INPUT, f"{file} cannot be written: {error.strerror}")


def _write(file: Path, text: str) -> None:
    """Replace the text of a file that may be written. A full disk leaves the old one. Raises OSError."""
    with file.open("r+b") as old:
        owner = os.fstat(old.fileno())
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(text.encode())
        part.chmod(owner.st_mode)
        os.chown(part, owner.st_uid, owner.st_gid)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _change(where: ControllerOptions, fabric: str, *, dry_run: bool) -> pb.FabricChange:
    try:
        path = spec_file(fabric)
        text = read_text(path)
    except FabricError as error:
        fail(BAD_INPUT, str(error))
    request = pb.ChangeFabricRequest(spec_yaml=text, source=str(path.resolve()), dry_run=dry_run)
    answer: pb.FabricChange = call_controller(
        where, lambda stub: stub.ChangeFabric(request, timeout=CHANGE_S)
    )
    return answer


def _show(answer: pb.FabricChange, *, as_json: bool) -> None:
    is_refused = any(element.refusal for element in answer.elements)
    if as_json:
        document = plain(answer)
        del document["spec_json"]
        print_json(document)
    elif not answer.elements:
        typer.echo("the fabric in use is the same")
    else:
        table = Table("element", "change", "used by", "refused")
        for element in answer.elements:
            jobs = listing(element.jobs) or "no job"
            table.add_row(
                element.name or "fabric", Text(element.change), Text(jobs), Text(element.refusal or "no")
            )
        Console().print(table)
        if answer.applied:
            typer.echo("applied; the controller starts anew, and jobs go on")
    if is_refused:
        if not as_json:
            typer.echo("refused; nothing is changed")
        raise typer.Exit(REFUSED)
