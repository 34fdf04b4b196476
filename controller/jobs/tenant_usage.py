# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The stored usage of a tenant: how much of the fabric its jobs have held, in all and lately. With the jobs of the
store it gives the usage at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from netfold.controller.jobs.records import Record
from netfold.controller.jobs.withdrawal import WallClock

HALF_LIFE_S = 3600.0
"""Seconds after which usage counts half."""

FORGOTTEN_S = 20 * HALF_LIFE_S
"""Seconds without a change after which usage counts nothing. So the turn of a tenant that gets nothing comes, however
many others come with less usage."""

MEAN_LIFE_S = HALF_LIFE_S / math.log(2)

KEPT_S = 30 * 86400.0
"""Seconds without a job after which a tenant's row is deleted, as events are."""

ADVANCE_S = 60.0
"""Seconds of usage that a job is charged with in advance. Without them a tenant with the least usage would get all
capacity at once, before its first job has used any."""

Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class Holding:
    """Slots of switches, and the rates promised to workers together, in bits a second."""

    slots: float = 0.0
    bits: float = 0.0

    def __add__(self, other: Holding) -> Holding:
        return Holding(self.slots + other.slots, self.bits + other.bits)

    def times(self, factor: float) -> Holding:
        return Holding(self.slots * factor, self.bits * factor)

    def largest_part_of(self, whole: Holding) -> float:
        """The dominant one of both fractions."""
        return max(self.slots / whole.slots, self.bits / whole.bits)


class TenantUsage(Record):
    """The usage of a tenant up to `at`, since when its jobs hold the same; 0: they have held nothing.

    tenant         "": of callers without one
    weight         its part of the fabric among those that want more; from its newest submission
    slot_seconds, promised_bits  in all
    recent_slot_seconds, recent_bits  in all, where usage of HALF_LIFE_S ago counts half
    holders        the `seq` of its jobs that have held something since `at`
    """

    tenant: str
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    at: WallClock = 0.0
    slot_seconds: Amount = 0.0
    promised_bits: Amount = 0.0
    recent_slot_seconds: Amount = 0.0
    recent_bits: Amount = 0.0
    holders: tuple[int, ...] = ()

    @property
    def recent(self) -> Holding:
        return Holding(self.recent_slot_seconds, self.recent_bits)

    def until(self, now: float, held: Holding) -> TenantUsage:
        """The usage at a time if the tenant has held this since `at`. A clock that goes back adds nothing."""
        seconds = max(0.0, now - self.at) if self.at else 0.0
        kept = 0.5 ** (seconds / HALF_LIFE_S) if seconds < FORGOTTEN_S else 0.0
        recent = self.recent.times(kept) + held.times((1 - kept) * MEAN_LIFE_S)
        return self.model_copy(
            update={
                "at": now,
                "slot_seconds": self.slot_seconds + held.slots * seconds,
                "promised_bits": self.promised_bits + held.bits * seconds,
                "recent_slot_seconds": recent.slots,
                "recent_bits": recent.bits,
            }
        )

    def charge(self, held: Holding, whole: Holding) -> float:
        """The dominant share of recent usage, of which `held` is a part in advance, over the weight."""
        return (self.recent + held.times(ADVANCE_S)).largest_part_of(whole) / self.weight

    def recent_share(self, whole: Holding) -> float:
        """The dominant share of the fabric that the tenant has held lately: 1 is all of it, all the time."""
        return self.recent.largest_part_of(whole.times(MEAN_LIFE_S))
