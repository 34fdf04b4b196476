# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The visible state of the controller, as the sections of a recording. A look costs as much as has changed since the
last one: records and reports are compared by identity, link loads as one array."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from netfold.controller.health.counters import Counters
from netfold.controller.health.link_loads import LinkLoads
from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.observation.member_rows import MemberRows, straggler
from netfold.controller.recording.lines import State, StateSection, merge, tree_document
from netfold.controller.switches.failed_elements import FailedElements
from netfold.controller.switches.fleet import Fleet
from netfold.protocol.wire import Verdict

UNKNOWN_STEPS = -1
LOAD_STEPS = 1000
"""Loads are recorded in steps of a link's rate."""

MIN_PACKETS_PER_S = 0.05

Rows = dict[str, Any]


@dataclass(frozen=True)
class JobChange:
    """A job's record that differs from the last one seen (None: a new job)."""

    before: JobRecord | None
    now: JobRecord


class Observer:
    """`look` returns the changes since the last look; `state` has all that was seen."""

    def __init__(
        self,
        controller: ControllerState,
        fleet: Fleet,
        loads: LinkLoads,
        counters: Counters,
    ) -> None:
        self.state: State = {section: {} for section in StateSection}
        self.job_changes: list[JobChange] = []
        self._registry = controller.registry
        self._fleet = fleet
        self._member_status = controller.member_status
        self._failures = controller.failures
        self._loads = loads
        self._monotonic_s = controller.clock.monotonic_s
        self._jobs: dict[str, JobRecord] = {}
        self._slots_in_use: dict[str, tuple[int, int]] = {}
        self._health: dict[str, tuple[Any, ...]] = {}
        self._members = MemberRows(controller.member_status, controller.packet_model.lanes)
        self._failed = FailedElements()
        self._link_names = [f"{sender}->{receiver}" for sender, receiver in loads.links]
        self._steps = np.full((len(loads.links), 2), UNKNOWN_STEPS, dtype=np.int64)
        self._revision = 0
        self._packets = _PacketRates(counters)

    def look(self) -> State:
        """The changed rows by section; `job_changes` are those of this look."""
        records = {job.name: job for job in self._registry.all()}
        changes: State = {}
        for section, rows in (
            (StateSection.MEMBERS, self._members.look(records, self._monotonic_s())),
            (StateSection.JOBS, self._look_at_jobs(records)),
            (StateSection.SWITCHES, self._look_at_switches()),
            (StateSection.FAILED, self._look_at_failures()),
            (StateSection.LINKS, self._look_at_links()),
            (StateSection.PACKETS, self._packets.look(self._monotonic_s())),
        ):
            if rows:
                changes[section] = rows
        merge(self.state, changes)
        return changes

    def _look_at_jobs(self, records: dict[str, JobRecord]) -> Rows:
        rows: Rows = dict.fromkeys(self._jobs.keys() - records.keys())
        self.job_changes = []
        for name, job in records.items():
            before = self._jobs.get(name)
            shown = self.state[StateSection.JOBS].get(name)
            slowest = None
            if job.state.is_installed and self._members.is_round_complete:
                reports = self._member_status.of(name)
                slowest = straggler({h: reports[h] for h in job.workers if h in reports})
            elif job.state.is_installed and shown is not None:
                slowest = shown["straggler"]
            if job is not before or (shown is not None and shown["straggler"] != slowest):
                rows[name] = {**_job_row(job), "straggler": slowest}
            if job is not before:
                self.job_changes.append(JobChange(before, job))
        if self.job_changes or rows:
            pools = self._registry.occupancy()
            self._slots_in_use = {name: (pool.in_use, pool.slots) for name, pool in pools.items()}
        self._jobs = records
        return rows

    def _look_at_switches(self) -> Rows:
        rows: Rows = {}
        for name, session in self._fleet.sessions.items():
            health = session.health
            seen = (
                health.ready,
                health.reached,
                health.error,
                health.repaired,
                *self._slots_in_use.get(name, (0, 0)),
            )
            if seen != self._health.get(name):
                self._health[name] = seen
                keys = ("ready", "reached", "error", "repaired", "slots_in_use", "slots")
                rows[name] = dict(zip(keys, seen, strict=True))
        return rows

    def _look_at_failures(self) -> Rows:
        failed = self._failures.failed
        if failed == self._failed:
            return {}
        rows: Rows = dict.fromkeys(set(self._failed.names) - set(failed.names))
        rows |= dict.fromkeys(failed.names, True)
        self._failed = failed
        return rows

    def _look_at_links(self) -> Rows:
        """A load that is not known any more is deleted."""
        is_stale = self._loads.is_stale()
        self._revision, measured = self._loads.revised(self._revision)
        measured = measured[~is_stale[measured]]
        loads, rates = self._loads.measured(measured)
        step = rates[:, np.newaxis] / LOAD_STEPS
        steps = np.rint(loads / step).astype(np.int64)
        is_new = (steps[:, 0] != self._steps[measured, 0]) | (steps[:, 1] != self._steps[measured, 1])
        changed = measured[is_new]
        self._steps[changed] = steps[is_new]
        in_unit = np.round(steps[is_new, ::-1] * step[is_new], 6)
        names = (self._link_names[row] for row in changed.tolist())
        # tuples: the garbage collector does not follow those of numbers, and there are thousands a second
        of_both = zip(in_unit[:, 0].tolist(), in_unit[:, 1].tolist(), strict=True)
        rows: Rows = dict(zip(names, of_both, strict=True))
        lost = np.flatnonzero(is_stale & (self._steps[:, 0] >= 0))
        self._steps[lost] = UNKNOWN_STEPS
        return rows | dict.fromkeys((self._link_names[row] for row in lost.tolist()), None)


class _PacketRates:
    """Packets a second by switch, job and verdict, between two readings of the counters."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._readings = 0
        self._at = 0.0
        self._before: dict[tuple[str, str, Verdict], int] = {}
        self._shown: Rows = {}

    def look(self, now: float) -> Rows:
        """`now`: monotonic clock."""
        if self._counters.readings == self._readings:
            return {}
        seconds, self._at, self._readings = now - self._at, now, self._counters.readings
        totals = dict(self._counters.totals)
        shown: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
        for (switch, job, verdict), count in totals.items():
            per_s = (count - self._before.get((switch, job, verdict), count)) / seconds
            if per_s >= MIN_PACKETS_PER_S:
                shown[switch][job][verdict.label] = round(per_s, 1)
        self._before = totals
        rows: Rows = dict.fromkeys(self._shown.keys() - shown.keys())
        rows |= {switch: dict(of) for switch, of in shown.items() if self._shown.get(switch) != of}
        self._shown = {switch: dict(of) for switch, of in shown.items()}
        return rows


def _job_row(job: JobRecord) -> Rows:
    row: Rows = {
        "state": job.state.value,
        "reason": job.reason,
        "epoch": job.epoch,
        "sequence": job.seq,
        "submitted": job.submitted,
        "transport": job.transport.value,
        "workers": list(job.all_workers),
        "parameter_servers": [m.host for m in job.members if m.parameter_server],
        "excluded": list(job.excluded),
        "rejoining": list(job.rejoining),
        "moving": job.previous is not None,
        "trees": [],
    }
    if job.state.is_terminal or job.placement is None:
        return row
    plan = job.placement.plan
    row |= {"scheme": plan.algorithm, "rate": plan.rate, "unit": plan.unit, "quorum": job.placement.quorum}
    row["trees"] = [
        {**tree_document(tree), "tree": numbers.tree, "slots": numbers.slots, "window": numbers.window}
        for tree, numbers in zip(plan.trees, job.placement.trees, strict=True)
    ]
    return row
