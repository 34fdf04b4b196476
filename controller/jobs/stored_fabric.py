# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric of a store, whose names keep their numbers.

The store has the fabric's text with all numbers, and the numbers of all names that it ever had."""

from __future__ import annotations

from typing import Protocol

from netfold.controller.jobs.engine import StoreError
from netfold.protocol.listing import listing
from netfold.topologies.address_assignment import Numbers, numbered
from netfold.topologies.differences import differences
from netfold.topologies.fabric import Fabric
from netfold.topologies.spec import fabric_from_spec, spec_text


class FabricStore(Protocol):
    """A store, as far as it has a fabric."""

    @property
    def fabric(self) -> str: ...

    @property
    def numbers(self) -> str: ...


class OtherFabricError(StoreError):
    """A file has another fabric than the store."""


def fabric_text(fabric: Fabric) -> str:
    """The text of a fabric that no store has yet. Raises FabricError."""
    return spec_text(numbered(fabric))


def known_numbers(numbers: str, fabric: Fabric) -> Numbers:
    """The numbers of all names that a store's fabric has or had. `numbers`: the text that the store has of them."""
    own = Numbers.of(fabric)
    return Numbers.from_text(numbers) | own if numbers else own


def check_same(store: FabricStore, fabric: Fabric) -> None:
    """Raises OtherFabricError if the store has another fabric than `fabric`, and FabricError."""
    stored = fabric_from_spec(store.fabric)
    changed = differences(stored, numbered(fabric, known_numbers(store.numbers, stored)))
    if changed:
        found = listing([str(d) for d in changed])
        raise OtherFabricError(
            f"the file has another fabric than the store ({found}). Start with --stored-fabric, then see "
            "`netfold fabric diff` and `netfold fabric apply`; or give another --state, which ends all jobs"
        )
