# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The row of the scheme quarter that goes again (docs/reference/protocol.md, F21 to F23), for small numbers and all of
them: every contribution of up to three workers, in every order of arrival at a node or below two inner nodes. A lane
has two fields of three bits and the rails of six."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

BITS = 3
FIELD = 1 << BITS
CODE_MAX = FIELD // 2 - 1
RAIL = (1 << 2 * BITS - 1) - 1  # as of int32: the lowest and the highest number of a lane
SPECIAL = None
"""A row with a NaN or an infinity."""

Row = tuple[int, int] | None


@dataclass(frozen=True)
class Packet:
    lane: int
    overflow: bool = False
    is_special: bool = False  # exponent 255: the maximum sticks


@dataclass(frozen=True)
class Rules:
    """Each may be left out."""

    sender_refuses: bool = True
    rails_absorb: bool = True
    overflow_goes_again: bool = True
    special_goes_again: bool = True
    borrow_is_given_back: bool = True


def send(row: Row, rules: Rules) -> Packet:
    if row is SPECIAL:
        return Packet(0, is_special=True)
    high, low = row
    if rules.sender_refuses and max(abs(high), abs(low)) > CODE_MAX:
        return Packet(0, overflow=True)
    lane = high * FIELD + low
    return Packet((lane + RAIL + 1) % (2 * RAIL + 2) - RAIL - 1)  # as 32 bits hold it


def add(one: Packet, other: Packet, rules: Rules) -> Packet:
    """Rules N8 to N10."""
    if rules.rails_absorb and one.lane in (RAIL, -RAIL - 1):
        total = one.lane
    elif rules.rails_absorb and other.lane in (RAIL, -RAIL - 1):
        total = other.lane
    else:
        total = max(-RAIL - 1, min(RAIL, one.lane + other.lane))
    return Packet(total, one.overflow or other.overflow, one.is_special or other.is_special)


def leave(packet: Packet) -> Packet:
    """Rule N9."""
    return replace(packet, overflow=packet.overflow or packet.lane in (RAIL, -RAIL - 1))


def take(result: Packet, rules: Rules) -> tuple[int, int] | None:
    """The sums, or None: the row goes again."""
    if (rules.overflow_goes_again and result.overflow) or (rules.special_goes_again and result.is_special):
        return None
    low = (result.lane + FIELD // 2) % FIELD - FIELD // 2
    rest = result.lane - low if rules.borrow_is_given_back else result.lane
    return rest // FIELD, low


def results(rows: tuple[Row, ...], rules: Rules) -> Iterator[Packet]:
    """Yields the results of every order of arrival, at one node and below two inner ones."""
    for order in itertools.permutations(rows):
        total = send(order[0], rules)
        for row in order[1:]:
            total = add(total, send(row, rules), rules)
        yield leave(total)
        if len(order) == 3:
            pair = leave(add(send(order[0], rules), send(order[1], rules), rules))
            yield leave(add(pair, leave(send(order[2], rules)), rules))


def wrong(rules: Rules) -> list[tuple[Row, ...]]:
    """Contributions that some order accepts with another sum than the true one, unless the low field's sum leaves its
    bits (which the observed range bounds, F23)."""
    numbers = range(-CODE_MAX - 2, CODE_MAX + 3)
    one: list[Row] = [SPECIAL, *itertools.product(numbers, numbers)]
    found = []
    for workers in (1, 2, 3):
        choices = one if workers < 3 else one[::3]
        for rows in itertools.combinations_with_replacement(choices, workers):
            finite = [row for row in rows if row is not None]
            true = (sum(row[0] for row in finite), sum(row[1] for row in finite))
            for result in results(rows, rules):
                sums = take(result, rules)
                if sums is None or true[1] < -FIELD // 2 or true[1] >= FIELD // 2:
                    continue
                if sums != true or len(finite) < workers:
                    found.append(rows)
                    break
    return found


def test_a_row_that_is_accepted_is_the_sum():
    assert wrong(Rules()) == []


@pytest.mark.parametrize("small", [1, CODE_MAX])
def test_rows_whose_sums_fit_do_not_go_again(small: int):
    numbers = range(-small, small + 1)
    for rows in itertools.combinations_with_replacement(itertools.product(numbers, numbers), 2):
        true = (rows[0][0] + rows[1][0], rows[0][1] + rows[1][1])
        if max(map(abs, true)) <= CODE_MAX:
            assert all(take(result, Rules()) == true for result in results(rows, Rules()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "left_out",
    ["sender_refuses", "rails_absorb", "overflow_goes_again", "special_goes_again", "borrow_is_given_back"],
)
def test_a_rule_that_is_left_out_is_found(left_out: str):
    assert wrong(replace(Rules(), **{left_out: False}))
