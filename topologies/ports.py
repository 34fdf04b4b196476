# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Port numbers of a switch, and the pipes that they imply on a chip with several."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum

from netfold.topologies.faults import Fault, Place

LAST_PORT = 509
"""v1model: 510 is the controller's port, 511 means drop; 0 means no port in tables and packet-outs."""

_LOCAL_BITS = 7
_LAST_LOCAL_PORT = 71


class Chip(StrEnum):
    """Switch chips with several pipes, each with registers of its own. The low seven bits of a port number are the port
    within the pipe, the others the pipe."""

    TOFINO = "tofino"
    TOFINO2 = "tofino2"


def pipe_of(chip: Chip | None, port: int) -> int:
    """The pipe of a port; 0 without a chip."""
    return 0 if chip is None else port >> _LOCAL_BITS


def port_faults(
    switch: str,
    chip: Chip | None,
    ports: Mapping[str, int],
    loopbacks: Sequence[int],
    neighbors: Collection[str],
) -> Iterator[Fault]:
    """The errors in a switch's port numbers of neighbors and loopback ports."""
    here = ("switches", switch)
    for name in ports:
        if name not in neighbors:
            known = ", ".join(neighbors)
            yield Fault(
                (*here, "ports", name),
                f"'{switch}' has a port to '{name}', but no link to it; its neighbors are {known}",
            )
    missing = [n for n in neighbors if n not in ports]
    if missing and ports:
        listed = ", ".join(missing)
        yield Fault(
            (*here, "ports"), f"the ports of '{switch}' lack {listed}; expected all neighbors or none"
        )
    elif missing and chip is not None:
        yield Fault(
            (*here, "chip"),
            f"the pipes of '{switch}', a {chip}, follow from its 'ports': expected all neighbors",
        )
    if loopbacks and chip is None:
        yield Fault((*here, "loopbacks"), f"'{switch}' has one pipe: loopbacks require a 'chip'")
    used: dict[int, str] = {}
    numbers: list[tuple[Place, int, str]] = [
        ((*here, "ports", name), number, f"the port to '{name}'") for name, number in ports.items()
    ]
    numbers += [((*here, "loopbacks", i), number, "a loopback") for i, number in enumerate(loopbacks)]
    for place, number, what in numbers:
        if not 1 <= number <= LAST_PORT:
            yield Fault(place, f"{what} of '{switch}' is number {number}; expected 1 ... {LAST_PORT}")
        elif number in used:
            yield Fault(place, f"port {number} of '{switch}' is already {used[number]}")
        elif chip is not None and number & ((1 << _LOCAL_BITS) - 1) > _LAST_LOCAL_PORT:
            yield Fault(
                place,
                f"port {number} does not exist on a {chip}; pipe p has the ports 128 p ... 128 p + {_LAST_LOCAL_PORT}",
            )
        used.setdefault(number, what)
