# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the history of a store: the revisions of etcd in their order, and no clock.

By revision: terms never fall, a process writes each head once, only the process writes that had the lease last, one in
a term, nothing is written beside a commit, all that was decided is written, numbers are unique at each switch and host,
epochs of slots and jobs grow, and a job stays until it has ended. Beside that: what clients were acknowledged, and the
terms in which switches were written to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from netfold.controller.jobs.etcd_engine import DATA, DECIDED, HEAD, LEADER, NEW
from netfold.controller.jobs.records import JobRecord, JobState
from netfold.controller.jobs.slot_allocator import BLOCK, Range
from tests.ha.history import Revision, key_of, tables_of
from tests.simulation.watch import check_numbers
from tests.simulation.world import ViolationError

Use = tuple[int, tuple[str, int, int]]
"""An epoch of a block of slots, and its tree: job, sequence number of the job, and index in the plan."""

MOST_UNDONE = 8
"""Commits of one process without an answer, one after the other, that may be undone."""


class Kind(StrEnum):
    """Kinds of requests that change the store."""

    SUBMIT = "submit"
    CANCEL = "cancel"
    WITHDRAW = "withdraw"
    GIVE_BACK = "give back"


@dataclass(frozen=True)
class Request:
    """A request of a client, for a job or an element. Without an acknowledgment it may have been granted or not."""

    kind: Kind
    name: str
    is_acknowledged: bool


@dataclass
class Rows:
    """The rows of a store, as far as they are checked. `submitted`: all jobs that were ever stored. `uses`: the last
    epoch of each block of slots, and its user."""

    jobs: dict[str, JobRecord] = field(default_factory=dict)
    submitted: set[str] = field(default_factory=set)
    revisions: dict[str, tuple[int, int]] = field(default_factory=dict)
    epochs: dict[str, dict[int, int]] = field(default_factory=dict)
    uses: dict[tuple[str, int], Use] = field(default_factory=dict)

    def copy(self) -> Rows:
        return Rows(
            self.jobs.copy(),
            self.submitted.copy(),
            self.revisions.copy(),
            self.epochs.copy(),
            self.uses.copy(),
        )

    def take(self, keys: Iterable[str], values: Mapping[str, bytes]) -> None:
        """Read the rows of keys that have changed. Raises ViolationError."""
        before = self.jobs.copy()
        for key in sorted(keys):
            prefix, _, rest = key.partition("/")
            name, tables = rest.rpartition("/")[0], tables_of(key, values)
            if prefix == "jobs":
                self._take_job(name, tables.get("jobs", []))
            elif prefix == "switches":
                self._take_switch(name, tables.get("revisions", []), tables.get("epochs", []))
        if self.jobs != before:
            check_numbers(list(self.jobs.values()))
            self._take_uses(job for job in self.jobs.values() if before.get(job.name) is not job)

    def _take_job(self, name: str, rows: Sequence[Sequence[object]]) -> None:
        before = self.jobs.pop(name, None)
        if not rows:
            if before is not None and not before.state.is_terminal:
                raise ViolationError(f"job {name} is gone, and was {before.state}")
            return
        job = JobRecord.model_validate_json(str(rows[0][3]))
        self.jobs[name] = job
        self.submitted.add(name)
        if before is not None and before.seq == job.seq and before.state.is_terminal and before != job:
            fields = [f for f in type(job).model_fields if getattr(before, f) != getattr(job, f)]
            changes = [f"{f} from {getattr(before, f)} to {getattr(job, f)}" for f in fields]
            raise ViolationError(f"job {name} had ended, and changes {'; '.join(changes)}")
        has_moved = (
            before is not None and before.seq == job.seq and job.placement not in (None, before.previous)
        )
        if before is not None and has_moved and before.epoch > job.epoch:
            raise ViolationError(f"the epoch of job {name} fell from {before.epoch} to {job.epoch}")
        if job.state is JobState.FAILED:
            raise ViolationError(f"job {name} failed: {job.reason}")

    def _take_switch(
        self, name: str, revisions: Sequence[Sequence[int]], epochs: Sequence[Sequence[int]]
    ) -> None:
        newest = max(((term, number) for _, term, number in revisions), default=(0, 0))
        last = self.revisions.get(name, (0, 0))
        if newest[0] < last[0] or newest[1] < last[1]:
            raise ViolationError(f"revision {newest} of the slots of {name} comes after {last}")
        self.revisions[name] = newest
        known, self.epochs[name] = self.epochs.get(name, {}), {block: epoch for _, block, epoch in epochs}
        for block, epoch in known.items():
            now = self.epochs[name].get(block)
            if now is None:  # its registers are empty
                self.uses.pop((name, block), None)
            elif now < epoch:
                raise ViolationError(f"the epoch of block {block} of {name} fell from {epoch} to {now}")

    def _take_uses(self, jobs: Iterable[JobRecord]) -> None:
        """Slots that get another user were never used in its epoch, or in a later one."""
        for job in jobs:
            for placement in job.placements:
                for index, tree in enumerate(placement.trees):
                    owner = (job.name, job.seq, index)
                    for switch, base in tree.bases.items():
                        for block in Range(base, max(tree.slots, BLOCK)).blocks:
                            epoch, user = self.uses.get((switch, block), (0, owner))
                            if user != owner and epoch >= placement.epoch:
                                raise ViolationError(
                                    f"{owner} uses block {block} of {switch} in epoch {placement.epoch}, and {user} "
                                    f"used it in epoch {epoch}"
                                )
                            self.uses[switch, block] = max(epoch, placement.epoch), owner


class Checker:
    """Takes revisions one after the other, and the requests of one client, which were made one after the other. Each
    check raises ViolationError."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.terms: set[int] = set()
        """Terms in which a process led."""
        self.commits = self.undone = 0
        self._number = 0
        self._term = 0
        self._heads: dict[str, int] = {}
        self._writers: dict[int, str] = {}
        self._leader = ""
        """The process that had the lease last."""
        self._decided: dict[str, bytes | None] = {}
        """Keys and values that a commit in parts is going to write."""
        self._changed: set[str] = set()
        self._rows = Rows()
        self._undoable: list[tuple[Rows, set[str]]] = []
        """The rows before each of the last commits of the process that wrote last, and the keys that were written
        since."""
        self._process = ""
        self._requested: set[str] = set()
        self._acknowledged: set[str] = set()
        self._canceled: set[str] = set()
        self._withdrawn: dict[str, set[bool]] = {}
        """Whether an element may be withdrawn."""
        self._in_doubt: set[str] = set()
        """Elements of requests without an acknowledgment, which may be granted until the store is at rest."""

    # ---- revisions -----------------------------------------------------------------------------------

    def take(self, revision: Revision) -> None:
        if revision.number <= self._number:
            raise ViolationError(f"revision {revision.number} comes after {self._number}")
        self._number = revision.number
        try:
            self._check_head(revision)
            for name in revision.deleted:
                del self.values[name]
            self.values |= revision.written
            changed = {*revision.written, *revision.deleted}
            self._changed |= {key_of(name) for name in changed if name.startswith(DATA)}
            self._check_parts(revision)
            if DECIDED not in self.values and self._changed:
                changes, self._changed = self._changed, set()
                if term := tables_of("facts/term/", self.values):
                    self._take_term(int(term["facts"][0][1]))
                self._check_rows(self.values[HEAD].decode().split(":")[1], changes)
        except ViolationError as error:
            head = self.values.get(HEAD, b"").decode()
            raise ViolationError(f"revision {revision.number} of {head}: {error}") from error

    def _check_head(self, revision: Revision) -> None:
        """Each change of the store replaces `head` by one that was never there."""
        if HEAD not in revision.written:
            names = sorted(n for n in {*revision.written, *revision.deleted} if n != LEADER)
            if others := [n for n in names if not n.startswith("standby/")]:
                raise ViolationError(f"{', '.join(others)} changed without the head")
            if LEADER in revision.written:
                raise ViolationError("a process leads without the head")
            return
        self.commits += 1
        term, process, number = revision.written[HEAD].decode().split(":")
        if int(term) < self._term:
            raise ViolationError(f"the term fell from {self._term} to {term}")
        if int(number) <= self._heads.get(process, 0):
            raise ViolationError(f"{process} wrote head {number} after {self._heads[process]}")
        self._term, self._heads[process] = int(term), int(number)
        if LEADER in revision.written:
            if LEADER in self.values:
                raise ViolationError(f"{process} took the lead from a leader with a lease")
            self._leader = process
            return
        if self._leader not in ("", process):
            raise ViolationError(f"{process} wrote, and {self._leader} had the lease last")
        if (writer := self._writers.setdefault(int(term), process)) != process:
            raise ViolationError(f"{process} wrote in term {term} of {writer}")

    def _take_term(self, term: int) -> None:
        if not max(self.terms, default=0) <= term <= self._term:
            raise ViolationError(f"a commit of term {self._term} leaves term {term}")
        self.terms.add(term)

    def _check_parts(self, revision: Revision) -> None:
        """A commit in parts writes all that has been decided."""
        if DECIDED in revision.written:
            staged = {n.removeprefix(NEW): v for n, v in self.values.items() if n.startswith(NEW)}
            self._decided = {DATA + n: v[1:] if v.startswith(b"=") else None for n, v in staged.items()}
        missing = (n for n, v in self._decided.items() if self.values.get(n) != v)
        if DECIDED in revision.deleted and (lost := sorted(missing)):
            raise ViolationError(f"decided, and not written: {', '.join(lost)}")

    def _check_rows(self, process: str, keys: set[str]) -> None:
        """A commit without an answer is undone by the next one of its process, which writes all of its keys. So rows
        may follow from those before such commits, too."""
        if process != self._process:
            self._process, self._undoable = process, []
        bases = [self._rows, *(rows for rows, since in reversed(self._undoable) if since <= keys)]
        faults = []
        for base in bases:
            after = base.copy()
            try:
                after.take(keys, self.values)
                break
            except ViolationError as error:
                faults.append(error)
        else:
            raise faults[0]
        self.undone += bool(faults)
        undoable = [(rows, since | keys) for rows, since in (*self._undoable, (self._rows, set()))]
        self._rows, self._undoable = after, undoable[-MOST_UNDONE:]

    # ---- clients -------------------------------------------------------------------------------------

    def add(self, request: Request) -> None:
        """Note a request after its end."""
        if request.kind in (Kind.WITHDRAW, Kind.GIVE_BACK):
            if not request.is_acknowledged:
                self._in_doubt.add(request.name)
            before = self._withdrawn.get(request.name, {False}) if request.name in self._in_doubt else set()
            self._withdrawn[request.name] = before | {request.kind is Kind.WITHDRAW}
            return
        if request.kind is Kind.CANCEL:
            self._requested.add(request.name)
        if request.is_acknowledged:
            (self._acknowledged if request.kind is Kind.SUBMIT else self._canceled).add(request.name)

    def check_requests(self) -> None:
        """At rest: all that was acknowledged is in the history that was taken, and nothing ended that no client
        canceled."""
        if lost := sorted(self._acknowledged - self._rows.submitted):
            raise ViolationError(f"acknowledged, and never stored: {', '.join(lost)}")
        for job in self._rows.jobs.values():
            if job.name in self._canceled and not job.state.is_terminal:
                raise ViolationError(f"job {job.name} was canceled, and is {job.state}")
            if job.state.is_terminal and job.name not in self._requested:
                raise ViolationError(f"job {job.name} is {job.state}, and no client canceled it")
        stored = {key.split("/")[1] for key in map(key_of, self.values) if key.startswith("withdrawals/")}
        for element, expected in self._withdrawn.items():
            if (is_stored := element in stored) not in expected:
                raise ViolationError(f"{element} is {'' if is_stored else 'not '}withdrawn")
            self._withdrawn[element] = {is_stored}
        self._in_doubt.clear()

    # ---- switches ------------------------------------------------------------------------------------

    def check_writers(self, switch: str, terms: Sequence[int]) -> None:
        """The terms of all writes to a switch, in its order."""
        if unknown := sorted(set(terms) - self.terms):
            raise ViolationError(f"{switch} was written to in term {unknown[0]}, in which no process led")
        for before, after in pairwise(terms):
            if after < before:
                raise ViolationError(f"{switch} was written to in term {after} after {before}")
