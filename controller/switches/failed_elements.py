# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes links, switches and hosts that planners and routes avoid."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from netfold.topologies.fabric import Fabric

MAX_ELEMENTS = 4096
"""Number of elements that one request may name."""

MAX_NAME = 500
"""Characters of a name that is looked up."""


class WithdrawalError(Exception):
    """An element cannot be withdrawn: the fabric has none of that name, or the request lacks what its intent needs."""


@dataclass(frozen=True)
class FailedElements:
    """Links (in both directions) and switches that planners and routes avoid, because they have failed or an operator
    has withdrawn them. Withdrawn hosts are among `switches`."""

    links: frozenset[frozenset[str]] = frozenset()
    switches: frozenset[str] = frozenset()

    def __or__(self, other: FailedElements) -> FailedElements:
        return FailedElements(self.links | other.links, self.switches | other.switches)

    def __sub__(self, other: FailedElements) -> FailedElements:
        return FailedElements(self.links - other.links, self.switches - other.switches)

    def __bool__(self) -> bool:
        return bool(self.links or self.switches)

    @property
    def names(self) -> list[str]:
        """The names of all elements."""
        return sorted((*self.switches, *map(link_name, self.links)))

    def covers(self, a: str, b: str) -> bool:
        """True if the link a-b or one of its ends has failed."""
        return frozenset((a, b)) in self.links or a in self.switches or b in self.switches


NO_ELEMENTS = FailedElements()


def link_name(ends: Iterable[str]) -> str:
    """The name of a link: those of its ends, in order."""
    return "-".join(sorted(ends))


def united(elements: Iterable[FailedElements]) -> FailedElements:
    """All these elements."""
    links, switches = set[frozenset[str]](), set[str]()
    for some in elements:
        links |= some.links
        switches |= some.switches
    return FailedElements(frozenset(links), frozenset(switches))


def elements_named(fabric: Fabric, names: Iterable[str]) -> FailedElements:
    """The switches, hosts and links (as `a-b` or `b-a`) of these names. Raises WithdrawalError."""
    wanted = list(dict.fromkeys(names))
    if not wanted:
        raise WithdrawalError("name a switch, a link or a host")
    if len(wanted) > MAX_ELEMENTS:
        raise WithdrawalError(
            f"a request names at most {MAX_ELEMENTS:,} elements, and this one {len(wanted):,}"
        )
    return united(element_named(fabric, name) for name in wanted)


def element_named(fabric: Fabric, name: str) -> FailedElements:
    """The switch, host or link (as `a-b` or `b-a`) of this name. Raises WithdrawalError for a name without a meaning or
    with two: a switch may be called `a-b`, as the link is between a and b."""
    found = _meanings(fabric, name)
    found |= {meaning for element in found for meaning in _meanings(fabric, element.names[0])}
    if len(found) == 1:
        return found.pop()
    if found:
        kinds = sorted("a link" if e.links else "a switch or host" for e in found)
        raise WithdrawalError(f"'{name}' has two meanings in fabric '{fabric.name}': {' and '.join(kinds)}")
    close = difflib.get_close_matches(name[:MAX_NAME], fabric.neighbors, n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise WithdrawalError(f"'{name[:MAX_NAME]}' is no switch, link or host of fabric '{fabric.name}'{hint}")


def _meanings(fabric: Fabric, name: str) -> set[FailedElements]:
    """The elements that the name may stand for."""
    near = fabric.neighbors
    if len(name) > MAX_NAME:
        return set()
    found = {FailedElements(switches=frozenset((name,)))} if name in near else set()
    for place in (place for place, letter in enumerate(name) if letter == "-"):
        a, b = name[:place], name[place + 1 :]
        if b in near.get(a, {}):
            found.add(FailedElements(frozenset((frozenset((a, b)),))))
    return found
