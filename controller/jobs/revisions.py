# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Compares revisions of the slots of a switch, to detect epochs that a store does not know.

A store that is restored from a backup has the epochs of that time, and the switches have later ones. Each use of slots
in a new epoch makes the next revision of the switch, and each leader counts under its own term. So a revision after the
backup has a number that the store never reached in that term, or a term that it never had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

TERMS, REVISIONS = 1 << 16, 1 << 28
"""Terms and numbers of revisions are compared modulo these, so that they fit into an entry of a switch."""


@dataclass(frozen=True)
class Revision:
    """Revision `number` >= 1 of a switch's slots, made by the leader of `term`."""

    term: int
    number: int


def is_known(found: Revision, last: Mapping[int, int]) -> bool:
    """Whether a store with these last numbers by term has made this revision."""
    numbers = (number for term, number in last.items() if term % TERMS == found.term % TERMS)
    return any(found.number % REVISIONS <= number % REVISIONS for number in numbers)
