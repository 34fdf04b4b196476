# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Port numbers of a switch, and the pipes that follow from them on a chip that has several."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

LAST_PORT = 509
"""510 is the controller's port on v1model, 511 means drop; 0 means no port in tables and packet-outs."""

_LOCAL_BITS = 7
_LAST_LOCAL_PORT = 71


class Chip(StrEnum):
    """Switch chips whose ports lie in several pipes, each with registers of its own. The number of a port
    says which: seven bits for the port within its pipe."""

    TOFINO = "tofino"
    TOFINO2 = "tofino2"


def pipe_of(chip: Chip | None, port: int) -> int:
    """The pipe that a port lies in; 0 without a chip."""
    return 0 if chip is None else port >> _LOCAL_BITS


@dataclass(frozen=True)
class PortFault:
    """What is wrong with a port; `where` it is said, within the switch (see topologies/schema.json)."""

    where: tuple[str | int, ...]
    message: str


def port_faults(
    switch: str,
    chip: Chip | None,
    ports: Mapping[str, int],
    loopbacks: Sequence[int],
    neighbors: Collection[str],
) -> Iterator[PortFault]:
    """All that is wrong with the numbers that a switch gives to its neighbors and to its ports in loopback
    mode."""
    for name in ports:
        if name not in neighbors:
            known = ", ".join(neighbors)
            yield PortFault(
                ("ports", name),
                f"'{switch}' has a port to '{name}', but no link to it; its neighbors are {known}",
            )
    missing = [n for n in neighbors if n not in ports]
    if missing and ports:
        listed = ", ".join(missing)
        yield PortFault(("ports",), f"the ports of '{switch}' lack {listed}; give all of them or none")
    elif missing and chip is not None:
        yield PortFault(
            ("chip",), f"the pipes of '{switch}', a {chip}, follow from its 'ports': give all of them"
        )
    if loopbacks and chip is None:
        yield PortFault(
            ("loopbacks",), f"'{switch}' has one pipe and needs no loopbacks, unless it has a 'chip'"
        )
    used: dict[int, str] = {}
    numbers: list[tuple[tuple[str | int, ...], int, str]] = [
        (("ports", name), number, f"the port to '{name}'") for name, number in ports.items()
    ]
    numbers += [(("loopbacks", i), number, "a loopback") for i, number in enumerate(loopbacks)]
    for where, number, what in numbers:
        if not 1 <= number <= LAST_PORT:
            yield PortFault(
                where, f"{what} of '{switch}' is number {number}; port numbers are 1 ... {LAST_PORT}"
            )
        elif number in used:
            yield PortFault(where, f"port {number} of '{switch}' is {used[number]} already")
        elif chip is not None and number & ((1 << _LOCAL_BITS) - 1) > _LAST_LOCAL_PORT:
            yield PortFault(
                where,
                f"port {number} is none of a {chip}; pipe p has the ports 128 p ... 128 p + {_LAST_LOCAL_PORT}",
            )
        used.setdefault(number, what)
