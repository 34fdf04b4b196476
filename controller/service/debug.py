# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Collects what a job's members, slots and switches show, for `job debug`: two looks at the members, and the packets
that came in between. hang.py decides what it means."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from netfold.controller.jobs.records import JobRecord
from netfold.controller.lifecycle.capacity import failed_in
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.member_status import CallsRequest, Progress, progress_delta
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.service.explain import PROBLEMS, Counts, read_counters, trees_of
from netfold.controller.service.hang import diagnose
from netfold.controller.service.hang_view import Diagnosis, JobView, MemberView, Refusal
from netfold.controller.service.slot_reading import SAMPLED_SLOTS, OpenSlots, read_open_slots
from netfold.controller.subsystems import Switches
from netfold.controller.switches.tables import NO_TREE
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.wire import Verdict

LOOK_S = 1.0
"""Seconds between two looks at the members."""
GLIMPSES = 10
"""Readings, at most, of the slots that workers wait for, between the two looks. Each of a slow job shows others."""
ANSWER_S = 2.0
"""Seconds that a member has to answer a request."""
CALLS = 256
"""Calls that are requested of each member, at most."""
CALLS_OF_ALL = 16_384
"""Calls that are requested of all members together: a document of more takes seconds, and many megabytes."""
CALL_FIELDS = tuple(f.name for f in pb.CallRecord.DESCRIPTOR.fields)
SLOT_KEYS = ("switch", "tree", "read", "waiting", "missing", "lost", "error")
HARMLESS = frozenset({Verdict.STALE_CHUNK, Verdict.DUPLICATE})
"""Verdicts of retransmissions, which a job that hangs for another reason has, too."""


class Debugger:
    def __init__(self, state: ControllerState, switches: Switches, lifecycle: Lifecycle) -> None:
        self._state = state
        self._switches = switches
        self._lifecycle = lifecycle
        self._one_at_a_time = asyncio.Lock()

    async def debug(self, name: str) -> pb.Diagnosis:
        """Raises UnknownJobError."""
        async with self._one_at_a_time:
            view = await self._look(self._state.registry.get(name))
        return await asyncio.to_thread(_diagnosis, view)  # of many members it takes long

    async def _look(self, job: JobRecord) -> JobView:
        state, name = self._state, job.name
        if not job.state.is_installed:
            return JobView(name, f"{job.state}", job.reason, 0.0)
        loop = asyncio.get_running_loop()
        began, before_counts = loop.time(), await read_counters(self._switches.counters)
        await self._request(job, 0)
        before = state.member_status.of(name)
        glimpses: list[OpenSlots] = []
        until = loop.time() + LOOK_S
        for _ in range(GLIMPSES):
            await asyncio.sleep(LOOK_S / GLIMPSES)  # a slot is open for a moment, and nothing notifies of it
            await self._request(job, 0, LOOK_S / GLIMPSES)
            glimpses += await self._slots(job, spread=0)
            if any(n.error for n in glimpses) or loop.time() > until:
                break  # a switch that does not answer, or slowly, would be waited for again
        request = await self._request(job, min(CALLS, max(1, CALLS_OF_ALL // len(job.members))))
        took_s, counts = loop.time() - began, await read_counters(self._switches.counters)
        job = state.registry.get(name)
        after = state.member_status.of(name)
        fleet = self._switches.fleet
        switches = self._lifecycle.switches_of(job)
        return JobView(
            name,
            f"{job.state}",
            job.reason,
            state.registry.resolved_job(name).lease_ms / 1000,
            tuple(self._members(job, request, before, after)),
            {s: f"{fleet.health(s).error}" for s in switches if not fleet.health(s).ready},
            [] if job.placement is None else failed_in(job.placement.plan, state.failures.of(name)).names,
            await self._slots(job),
            glimpses,
            tuple(_refusals(job, before_counts, counts, took_s)),
            {m.host: state.fabric.attachment(m.host) for m in job.members},
        )

    async def _request(self, job: JobRecord, max_calls: int, answer_s: float = ANSWER_S) -> CallsRequest:
        """Request the last calls of the members. Those that do not answer in time are not in its answers."""
        hosts = [m.host for m in job.members if not m.left]
        request = self._state.member_status.request_calls(job.name, hosts, max_calls)
        self._state.changes.notify(job.name)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(answer_s):
                await request.is_complete.wait()
        return request

    def _members(
        self,
        job: JobRecord,
        request: CallsRequest,
        before: Mapping[str, Progress],
        after: Mapping[str, Progress],
    ) -> Iterator[MemberView]:
        status, registry = self._state.member_status, self._state.registry
        now, ranks = self._state.clock.monotonic_s(), {h: i for i, h in enumerate(job.workers)}
        for member in job.members:
            host = member.host
            if not (registry.needs(job, host) or member.left):
                continue
            old, new = before.get(host), after.get(host)
            connected = status.is_connected(job.name, host)
            answer = request.answers.get(host)
            progress = Progress() if new is None else new
            lately = () if old is None else progress_delta(old, progress)
            results, retransmits = sum(t.results for t in lately), max(0, sum(t.retransmits for t in lately))
            age_s = None if new is None else max(0.0, now - progress.at_s)
            call = progress.call
            if call is not None and call.in_call and age_s is not None:
                call = call._replace(for_s=call.for_s + age_s)
            yield MemberView(
                host,
                ranks.get(host, 0),
                member.parameter_server,
                member.joined,
                connected,
                member.left,
                answer is not None,
                age_s,
                progress.silent_s,
                progress.next_call,
                call,
                results > 0 or (old is not None and old.next_call != progress.next_call),
                retransmits,
                retransmits / (results + retransmits) if retransmits else 0.0,
                () if answer is None else tuple(answer.calls),
                "" if answer is None else answer.location,
            )

    async def _slots(self, job: JobRecord, *, spread: int = SAMPLED_SLOTS) -> list[OpenSlots]:
        fabric, slots = self._state.fabric, self._switches.slots
        reports = self._state.member_status.of(job.name)
        found = [
            await read_open_slots(fabric, slots, planned, tree, epoch, reports, spread=spread)
            for planned, tree, epoch in trees_of(job)
        ]
        return [node for nodes in found for node in nodes]


def _diagnosis(view: JobView) -> pb.Diagnosis:
    found = diagnose(view)
    return pb.Diagnosis(
        finding=found.finding, evidence=found.evidence, document_json=json.dumps(_document(view, found))
    )


def _refusals(job: JobRecord, before: Counts, after: Counts, took_s: float) -> Iterator[Refusal]:
    """The packets of the job, or of no known tree at its switches, that were not added up in these seconds."""
    trees = {planned.tree for planned, _, _ in trees_of(job)}
    switches = {s for _, tree, _ in trees_of(job) for s in tree.touched}
    for (switch, tree), counts in sorted(after.items()):
        old = before.get((switch, tree), {})
        for verdict, meaning in PROBLEMS.items():
            new = counts.get(verdict, 0) - old.get(verdict, 0)
            if tree in trees and verdict not in HARMLESS and new > 0:
                yield Refusal(switch, verdict.label, new / took_s, meaning)
        if tree == NO_TREE and switch in switches:
            new = counts.get(Verdict.UNADMITTED, 0) - old.get(Verdict.UNADMITTED, 0)
            if new > 0:
                meaning = "are of no job that is admitted at the port they came by"
                yield Refusal(switch, Verdict.UNADMITTED.label, new / took_s, meaning)


def _document(view: JobView, found: Diagnosis) -> dict[str, Any]:
    """The shape follows that of NCCL RAS: a job is a communicator, with ranks and missing ranks."""
    workers = [m for m in view.members if not (m.parameter_server or m.left)]
    present = [m for m in workers if m.connected]
    return {
        "finding": found.finding,
        "cause": found.cause.value,
        "elements": list(found.elements),
        "evidence": list(found.evidence),
        "communicators": [
            {
                "name": view.name,
                "state": view.state,
                "size": len(workers),
                "ranks_count": len(present),
                "missing_ranks_count": len(workers) - len(present),
                "ranks": [_rank(m) for m in present],
                "missing_ranks": [
                    {"rank": m.rank, "host": m.host, "considered_dead": m.joined}
                    for m in workers
                    if not m.connected
                ],
            }
        ],
        "slots": [{key: getattr(n, key) for key in SLOT_KEYS} for n in view.slots],
        "refusals": [
            {"switch": r.switch, "verdict": r.verdict, "per_second": r.per_second} for r in view.refusals
        ],
    }


def _rank(member: MemberView) -> dict[str, Any]:
    return {
        "rank": member.rank,
        "host": member.host,
        "answered": member.answered,
        "update_age_s": member.update_age_s,
        "next_call": member.next_call,
        "in_call": None if member.call is None else member.call._asdict(),
        "retransmitted": member.retransmitted,
        "location": member.location,
        "collective_counts": Counter(r.kind for r in member.calls if r.status == "done"),
        "calls": [{name: getattr(r, name) for name in CALL_FIELDS} for r in member.calls],
    }
