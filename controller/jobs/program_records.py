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
    CANCELED = "canceled"


class RolloutRecord(Record):
    """The last rollout of a program.

    name, digest  of the program
    previous   digests of the programs that switches had before
    done       switches that have passed their check
    left       switches that have not; the first one is under way
    displaced  what an operator had requested for the one under way
    down       links of the one under way that were down before it got the program
    reason     why the one under way gets its program back, after which the rollout ends; "": it does not
    is_canceled  an operator is the reason, and not a failed check
    """

    name: str
    digest: str
    previous: dict[str, str]
    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    displaced: Withdrawal | None = None
    down: tuple[str, ...] = ()
    reason: str = ""
    is_canceled: bool = False
    state: RolloutState = RolloutState.RUNNING

    @property
    def end(self) -> RolloutState:
        """The state in which it ends once no switch is under way."""
        if self.is_canceled:
            return RolloutState.CANCELED
        return RolloutState.STOPPED if self.reason else RolloutState.DONE

    @property
    def progress(self) -> dict[str, int]:
        """Numbers of switches."""
        counts = {"done": len(self.done), "under_way": 0, "failed": 0, "waiting": len(self.left[1:])}
        if self.left:
            first = {RolloutState.RUNNING: "under_way", RolloutState.STOPPED: "failed"}
            counts[first.get(self.state, "waiting")] += 1
        return counts


NO_ROLLOUT = RolloutRecord(name="", digest="", previous={})
