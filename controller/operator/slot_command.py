# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold job slot`: the contents of one slot of a job at a switch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from netfold.controller.operator.controller_client import (
    JobArgument,
    call_controller,
    plain,
    print_json,
)
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.options import AsJson, ControllerOptions, reaches_controller


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
    for line in _lines(contents, switch, job, number, lanes):
        typer.echo(line)


def _lines(contents: pb.SlotContents, switch: str, job: str, number: int, lanes: int) -> Iterator[str]:
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
