# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""RoCE's go-back-N over the slot machine: no wrong sum, no slot claimed while a worker may ask for it, and all finish
after whatever was lost, with `A >= 2 W`; and every rule left out is found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.model import mutants
from tests.model.checker import bounds, check, prove
from tests.model.machine import Machine
from tests.model.network import Violation
from tests.model.ring import Ring, Worker

SMALL = [
    Ring(2, 2, 1, (1, 1, 1, 1)),
    Ring(2, 4, 2, (2, 2)),
    Ring(3, 2, 1, (1, 1, 1)),
    Ring(2, 2, 1, (1, 1), lives=2),
]
LARGE = [
    Ring(2, 4, 2, (1, 2, 1, 1)),
    Ring(2, 2, 1, (1, 1, 1), lives=2),
    Ring(3, 2, 1, (1, 1, 1, 1)),
]


@pytest.mark.parametrize("ring", bounds(SMALL, LARGE), ids=str)
def test_every_worker_gets_every_sum(ring: Ring, record_property: Callable[..., None]):
    prove(ring, 8_000_000, record_property)


class AsksForItself(Ring):
    """A worker that asks again is answered, as in the protocol's own form."""

    def answered(self, asker: int) -> int:
        return asker


class SamePsns(Ring):
    """New connections begin with the PSNs of the old ones."""

    def first_psn(self, life: int) -> int:
        return 0


class NoBefore(Ring):
    """The whole circle of PSNs is ahead."""

    def chunk_of(self, psn: int, life: int) -> int | None:
        return (psn - self.first_psn(life)) % (2 * self.half)


class NoCredit(Ring):
    def limit(self, worker: Worker) -> int:
        return self.chunks


MACHINES = {
    mutants.NoBitmap: "I2",
    mutants.TagIgnored: "I2",
    mutants.OlderClaims: "progress",
    mutants.ClaimAdds: "I2",
    mutants.RootForgets: "progress",
    mutants.PartialResult: "I2",
}


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: m.__name__)
def test_a_machine_with_one_thing_wrong_is_found(machine: type[Machine]):
    with pytest.raises(Violation, match=MACHINES[machine]):
        check(Ring(2, 2, 1, (1, 1, 1), machine()))


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (AsksForItself(2, 2, 1, (1, 1)), "progress"),
        (SamePsns(2, 2, 1, (1, 1), lives=2), "I2"),
        (NoBefore(2, 2, 1, (1, 1), lives=2), "I2|progress|overrun"),
        (NoCredit(2, 2, 1, (1, 1, 1)), "overrun"),
        (Ring(2, 2, 2, (1, 1, 1)), "overrun"),
        (Ring(2, 2, 2, (2, 2)), "overrun"),
    ],
    ids=["asks for itself", "same PSNs", "no before", "no credit", "A < 2 W", "A < 2 W, by messages"],
)
def test_a_rule_left_out_is_found(broken: Ring, found: str):
    with pytest.raises(Violation, match=found):
        check(broken)
