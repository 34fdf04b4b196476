# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Defines the stored programs of switches, and the record of a rollout."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from enum import StrEnum

from netfold.controller.jobs.records import Record
from netfold.controller.jobs.withdrawal import Withdrawal
from netfold.p4src.manifest import Program


@dataclass(frozen=True)
class StoredProgram:
    """A compiled program. The store has it whole, so that a switch can have it back when its files are gone."""

    name: str
    p4info: bytes
    blob: bytes
    abilities: Program

    @functools.cached_property
    def digest(self) -> str:
        parts = (hashlib.sha256(part).digest() for part in (self.p4info, self.blob))
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass(frozen=True)
class SwitchProgram:
    """The program that a switch has to run. `was_rolled_out`: a rollout chose it, and not the controller's options."""

    digest: str
    was_rolled_out: bool


class RolloutState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    STOPPED = "stopped"


class RolloutRecord(Record):
    """The last rollout of a program.

    name, digest  of the program
    previous   digests of the programs that switches had before
    done       switches that have passed their check
    left       switches that have not; the first one is under way
    displaced  what an operator had requested for the one under way
    down       links of the one under way that were down before it got the program
    reason     why its check failed: it gets its program back, and the rollout stops; "": it has not
    """

    name: str
    digest: str
    previous: dict[str, str]
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    displaced: Withdrawal | None = None
    down: tuple[str, ...] = ()
    reason: str = ""
    state: RolloutState = RolloutState.RUNNING
