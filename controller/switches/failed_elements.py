# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Describes links, switches and hosts that planners and routes avoid."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from netfold.topologies.fabric import Fabric


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
        """The names of all elements; a link a-b has those of its ends, in order."""
        return sorted((*self.switches, *("-".join(sorted(link)) for link in self.links)))

    def covers(self, a: str, b: str) -> bool:
        """True if the link a-b or one of its ends has failed."""
        return frozenset((a, b)) in self.links or a in self.switches or b in self.switches


NO_ELEMENTS = FailedElements()


def element_named(fabric: Fabric, name: str) -> FailedElements:
    """The switch, host or link (as `a-b` or `b-a`) of this name. Raises WithdrawalError."""
    nodes = [*(s.name for s in fabric.switches), *(h.name for h in fabric.hosts)]
    if name in nodes:
        return FailedElements(switches=frozenset((name,)))
    for link in fabric.links:
        if name in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"):
            return FailedElements(frozenset((frozenset((link.a, link.b)),)))
    close = difflib.get_close_matches(name, [*nodes, *(f"{k.a}-{k.b}" for k in fabric.links)], n=1)
    hint = f"; did you mean '{close[0]}'?" if close else ""
    raise WithdrawalError(f"'{name}' is no switch, link or host of fabric '{fabric.name}'{hint}")
