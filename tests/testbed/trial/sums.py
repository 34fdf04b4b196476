# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays whose sum names its contributors. Each worker of a job has three bits of every element: they depend on the
element's position, and on a salt that the worker draws for the call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ELEMENTS = 1500
MAX_WORKERS = 6
"""18 bits: sums are exact in float32."""

FIELD_BITS = 3
SALTS = (1 << FIELD_BITS) - 1

_POSITIONS = np.arange(ELEMENTS)


@dataclass(frozen=True)
class Share:
    """A worker's part of a sum: its salt, the number of elements that it is in, and of those that have another one's
    value."""

    salt: int
    elements: int
    wrong: int


@dataclass(frozen=True)
class Contents:
    """The contributions to a sum. `shares`: by index of the worker; `stray`: elements that no workers' values add up
    to; `fewest`: contributors to an element, at least."""

    shares: dict[int, Share]
    stray: int
    fewest: int


def contribution(index: int, salt: int) -> NDArray[np.float32]:
    """The array of a worker. `index`: 0 to MAX_WORKERS - 1; `salt`: 0 to SALTS - 1."""
    return (_pattern(salt) << FIELD_BITS * index).astype(np.float32)


def contents_of(total: NDArray[np.float32]) -> Contents:
    whole = np.clip(np.nan_to_num(total), -1, 1 << FIELD_BITS * MAX_WORKERS).astype(np.int64)
    is_stray = (whole != total) | (whole < 0) | (whole >= 1 << FIELD_BITS * MAX_WORKERS)
    fields = [whole >> FIELD_BITS * index & SALTS for index in range(MAX_WORKERS)]
    shares = {index: _share(field) for index, field in enumerate(fields) if field.any()}
    counts = sum((field > 0).astype(np.int64) for field in fields)
    return Contents(shares, int(is_stray.sum()), int(np.min(counts)))


def _pattern(salt: int) -> NDArray[np.int64]:
    """1 to SALTS at each element."""
    return 1 + (salt + _POSITIONS) % SALTS


def _share(field: NDArray[np.int64]) -> Share:
    is_there = field > 0
    first = int(np.argmax(is_there))
    salt = int(field[first] - 1 - first) % SALTS
    return Share(salt, int(is_there.sum()), int((is_there & (field != _pattern(salt))).sum()))
