# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The blocks of an array of which each has one worker as its owner (docs/reference/protocol.md, section 5.8)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class CallForm(IntEnum):
    """Workers that get the result of a call: `enum nf_form` of call/request.h."""

    TO_ALL = 0
    SCATTER = 1
    GATHER = 2


@dataclass(frozen=True)
class Blocks:
    """`elements` and rank of the owner of each block, in the order of the array. In a scatter owners get the sums of
    their blocks, in a gather they give them."""

    form: CallForm
    elements: tuple[int, ...]
    owners: tuple[int, ...]

    @classmethod
    def one_each(cls, form: CallForm, elements: int, workers: int) -> Blocks:
        """Returns equal blocks, block k of worker k. `elements` is a multiple of `workers`."""
        return cls(form, (elements // workers,) * workers, tuple(range(workers)))
