# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Explains a job for `job explain`: what it does or waits for, step by step, from its state, the counters of the
switches, and the slots."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from netfold.controller.features.registry import features_of
from netfold.controller.health.counters import Counters, SwitchTree
from netfold.controller.health.link_room import MIN_KEPT_FRACTION, LinkRoom
from netfold.controller.jobs.file import Reroute
from netfold.controller.jobs.records import AllocatedTree, JobRecord, JobState
from netfold.controller.jobs.withdrawal import Intent
from netfold.controller.lifecycle.controller_state import ControllerState
from netfold.controller.lifecycle.member_status import Progress, TreeProgress
from netfold.controller.lifecycle.states import Lifecycle
from netfold.controller.planning.plan import Tree
from netfold.controller.planning.planner import full_nodes
from netfold.controller.scheduling.maintenance import withdrawn_elements
from netfold.controller.service.call_status import calls_step
from netfold.controller.service.slot_reading import OpenSlots, read_open_slots
from netfold.controller.subsystems import Planning, Switches
from netfold.controller.switches.failed_elements import link_name
from netfold.controller.switches.fleet import Fleet
from netfold.controller.switches.tables import NO_TREE
from netfold.protocol.listing import listing
from netfold.protocol.wire import Verdict
from netfold.topologies.fabric import Fabric

SAMPLE_S = 0.5
"""Seconds between two readings of counters, whose difference is the present flow."""
MAX_LINKS = 4
MAX_SWITCHES = 8
"""Number of switches of a tree up to which the packets of each are shown."""

_TOO_BUSY = (
    "this machine is too busy, or the switch hangs; the job continues by itself when the switch answers"
)

_FORWARD = {
    Verdict.ACCUMULATED,
    Verdict.RESULT_SENT,
    Verdict.SUM_SENT,
    Verdict.FORWARDED,
    Verdict.MULTICAST,
}
PROBLEMS = {
    Verdict.UNROUTED: "have no route out of this switch: an entry of the tree is missing",
    Verdict.BAD_SLOT: "named a slot outside the tree's range: a sender uses other slots than it was assigned",
    Verdict.STALE_EPOCH: "are of another job epoch: a sender has not received the newest assignment",
    Verdict.STALE_CHUNK: "arrived after all had their sum: harmless retransmissions, if few",
    Verdict.LATE: "arrived after their sum was sealed without them: a worker is slower than the quorum's deadline",
    Verdict.SLOT_REUSED: "arrived after their slot was reused: a worker is far behind and has to join again",
    Verdict.DUPLICATE: "are duplicates of an incomplete sum: a sender retransmits while contributions are missing",
}


class Explainer:
    def __init__(
        self, state: ControllerState, switches: Switches, lifecycle: Lifecycle, planning: Planning
    ) -> None:
        self._state = state
        self._switches = switches
        self._lifecycle = lifecycle
        self._planning = planning

    async def explain(self, name: str, shown: Callable[[str], str] = str) -> list[str]:
        """Explain a job in lines. `shown`: the name of another job as the caller may see it. Raises UnknownJobError."""
        state, switches, lifecycle = self._state, self._switches, self._lifecycle
        job = state.registry.get(name)
        steps = explain_from_store(state.fabric, job)
        if job.state is JobState.QUEUED and (ends := self._planning.placements.awaited_ends(name)):
            names = listing([shown(end) for end in ends])
            steps.append(f"It fits at the latest when these jobs have ended: {names}.")
        if not job.state.is_installed:
            return steps
        if job.placement is not None and (limit := full_nodes(state.fabric, job.placement.plan)):
            steps.append(f"What may hold its rate down: {limit}.")
        steps += _switches(lifecycle, switches.fleet, state.clock.monotonic_s(), job)
        steps += [f"It waits to move: {why}." for why in self._planning.migrations.postponed(name)]
        steps += self._drained(job)
        steps += self._miscabled(job)
        steps += _members(state, job)
        steps += calls_step(state.member_status.of(name), state.clock.monotonic_s())
        steps += _links(state, switches.link_room, job)
        steps += _tree_reports(state.member_status.of(name))
        before = await read_counters(switches.counters)
        await asyncio.sleep(SAMPLE_S)
        after = await read_counters(switches.counters)
        for planned, tree, epoch in trees_of(job):
            places = [p for p in sorted(after) if p[1] == planned.tree and p[0] in tree.touched]
            steps += _packet_rates(planned, places, before, after)
            if not _completes(places, before, after):
                reports = state.member_status.of(name)
                found = await read_open_slots(state.fabric, switches.slots, planned, tree, epoch, reports)
                steps += _missing_children(found, epoch)
        steps += _unknown_packets(before, after)
        return steps

    def _drained(self, job: JobRecord) -> Iterator[str]:
        """The drained elements that the job uses, and why it stays there."""
        state = self._state
        found = withdrawn_elements(state.fabric, state.registry.withdrawals, [job])
        over = [e.withdrawal.element for e in found if e.jobs and e.withdrawal.intent is Intent.DRAIN]
        if over:
            why = self._planning.migrations.stays_because(job.name)
            yield f"It uses what is drained, {listing(over)}" + (
                f", and cannot leave: {why}." if why else "."
            )

    def _miscabled(self, job: JobRecord) -> Iterator[str]:
        """The cables of the job's links that lead elsewhere."""
        links = {link_name(link) for placement in job.placements for link in placement.links}
        found = [str(m) for m in self._state.failures.miscablings if m.link in links]
        if found:
            yield f"Cables of its links lead elsewhere: {listing(found, MAX_LINKS)}."


def explain_from_store(fabric: Fabric, job: JobRecord) -> list[str]:
    """The steps that need only the store."""
    last = "; its last change: " if job.state is JobState.RUNNING else ": "
    steps = [f"The job is {job.state}" + (f"{last}{job.reason}." if job.reason else ".")]
    if job.state is JobState.QUEUED:
        steps.append("It is tried again whenever a job ends, or a switch or link comes back.")
    if job.state.is_installed:
        steps += _plan(job)
        for feature in features_of(job):
            steps += feature.explain(fabric, job)
    return steps


Counts = dict[SwitchTree, dict[Verdict, int]]


async def read_counters(counters: Counters) -> Counts:
    await counters.refresh()
    return {place: dict(counts) for place, counts in counters.trees.items()}


def trees_of(job: JobRecord) -> Iterator[tuple[AllocatedTree, Tree, int]]:
    if job.placement is not None:
        for planned, tree in zip(job.placement.trees, job.placement.plan.trees, strict=True):
            yield planned, tree, job.placement.epoch


def _plan(job: JobRecord) -> Iterator[str]:
    if job.placement is not None:
        plan = job.placement.plan
        roots = listing([f"{t.root} ({t.share:.0%})" for t in plan.trees])
        rate = f"{plan.rate:g} {plan.unit}"
        yield f"Job epoch {job.epoch}, planned by {plan.algorithm} at {rate} a worker; roots: {roots}."
        if plan.hierarchy is not None:
            yield f"Ranks of a host reduce {plan.hierarchy.why(plan.rate)}."


def _switches(lifecycle: Lifecycle, fleet: Fleet, now: float, job: JobRecord) -> Iterator[str]:
    unready = [s for s in lifecycle.switches_of(job) if not fleet.health(s).ready]
    for switch in unready:
        health = fleet.health(switch)
        yield f"Switch {switch} is not ready: {health.error}."
        if health.silent:
            yield f"It waits for {switch}, for {now - health.since:.0f} s now: {_TOO_BUSY}."
    if not unready:
        yield f"All its switches are ready: {listing(lifecycle.switches_of(job))}."
    if late := [s for s in lifecycle.unfinished_switches(job.name) if s not in unready]:
        yield f"Switch {listing(late)} has not taken the job's entries yet: {_TOO_BUSY}."


def _members(state: ControllerState, job: JobRecord) -> Iterator[str]:
    if job.sandbox:
        yield "It is a sandbox: no worker joins it, and its packets are made by hand (`netfold host send`)."
    if job.interrupted:
        yield "It has no workers, and waits for the next ones to join."
        return
    needed = [m.host for m in job.members if state.registry.needs(job, m.host)]
    absent = [h for h in needed if not state.member_status.is_connected(job.name, h)]
    if absent:
        yield f"Not connected: {listing(absent)}; sums wait until all workers have joined."
    elif needed:
        yield f"All {len(needed)} members are connected."
    awaited = [h for h in job.excluded if h in job.added and h not in job.rejoining]
    lost = [h for h in job.excluded if h not in job.added and h not in job.rejoining]
    if lost:
        yield f"It continues without {listing(lost)}; a new worker there may join again."
    if awaited:
        yield f"Its workers at {listing(awaited)} were added and have not joined yet."
    if job.rejoining:
        yield f"{listing(job.rejoining)} joined and take part from the next job epoch."


def _links(state: ControllerState, link_room: LinkRoom, job: JobRecord) -> Iterator[str]:
    """Cross traffic on the job's links, the largest first, and the share of the reserved rate that it leaves."""
    assert job.placement is not None
    plan, cross_traffic = job.placement.plan, link_room.cross_traffic().links
    loaded = sorted((k for k in plan.loads.links if k in cross_traffic), key=lambda k: -cross_traffic[k])
    if not loaded:
        yield "There is no cross traffic on its links."
        return
    kept = link_room.kept_fractions(cross_traffic)[job.name]
    shown = ", ".join(
        f"{a}->{b} {cross_traffic[a, b]:.3g} of {state.fabric.link(a, b).rate:g}"
        for a, b in loaded[:MAX_LINKS]
    )
    yield f"Cross traffic on {len(loaded)} of its links ({plan.unit}): {shown}; it leaves {kept:.0%} of the job's rate."
    if kept < MIN_KEPT_FRACTION:
        mode = state.registry.resolved_job(job.name).file.reroute
        yield (
            "It is not moved: its file has `reroute: off`."
            if mode is Reroute.OFF
            else "It is moved if another placement gains a tenth or more."
        )


def _tree_reports(reports: Mapping[str, Progress]) -> Iterator[str]:
    """For each tree the report of the worker with the most ECN marks."""
    worst: dict[int, tuple[str, TreeProgress]] = {}
    for host, report in reports.items():
        for tree in report.lately:
            if tree.results and (tree.tree not in worst or tree.marks > worst[tree.tree][1].marks):
                worst[tree.tree] = (host, tree)
    for number, (host, tree) in sorted(worst.items()):
        yield (
            f"Tree {number} at {host}: {tree.marks:.0%} of results marked, {tree.losses:.1%} retransmitted, SRTT "
            f"{tree.rtt_ms:.1f} ms (min RTT {tree.min_rtt_ms:.1f})."
        )


def _packet_rates(
    planned: AllocatedTree, places: Sequence[SwitchTree], before: Counts, after: Counts
) -> Iterator[str]:
    """The packets of each switch of the tree, or their sums if there are many switches; then the problems."""
    rates = {p: _rates(before.get(p, {}), after[p]) for p in places}
    if len(places) <= MAX_SWITCHES:
        for place in places:
            yield f"Tree {planned.tree} at {place[0]}: {_seen(after[place], rates[place]) or 'no packet yet'}."
    else:
        counts, together = _sum(after[p] for p in places), _sum(rates[p] for p in places)
        seen = _seen(counts, together) or "no packet yet"
        yield f"Tree {planned.tree} at its {len(places)} switches: {seen}."
        silent = [switch for switch, _ in places if not any(after[switch, planned.tree].values())]
        if silent and any(counts.values()):
            yield f"Tree {planned.tree} has had no packet yet at {listing(silent)}."
    for verdict, meaning in PROBLEMS.items():
        found = {
            p[0]: r[verdict] for p, r in rates.items() if r[verdict] > 0.01 * sum(r[v] for v in _FORWARD)
        }
        if found:
            yield f"At {listing(list(found))} {sum(found.values()):.0f} packets a second {meaning}."


def _rates(before: Mapping[Verdict, float], after: Mapping[Verdict, float]) -> dict[Verdict, float]:
    return {v: (n - before.get(v, 0)) / SAMPLE_S for v, n in after.items()}


def _sum(counts: Iterable[Mapping[Verdict, float]]) -> Counter[Verdict]:
    total: Counter[Verdict] = Counter()
    for each in counts:
        total.update(each)
    return total


def _seen(counts: Mapping[Verdict, float], rates: Mapping[Verdict, float]) -> str:
    return ", ".join(f"{v.label} {counts[v]:.0f} (+{rates[v]:.0f}/s)" for v in Verdict if counts[v])


def _completes(places: Sequence[SwitchTree], before: Counts, after: Counts) -> bool:
    """Whether a sum of the tree was completed between the two readings."""
    done = (Verdict.RESULT_SENT, Verdict.MULTICAST)
    return any(after[place][v] > before.get(place, {}).get(v, 0) for place in places for v in done)


def _missing_children(found: Iterable[OpenSlots], epoch: int) -> Iterator[str]:
    """The children whose contributions the open slots of each node lack."""
    for node in found:
        if node.error:
            yield f"The slots of {node.switch} cannot be read: {node.error}."
        elif node.missing:
            workers = listing([f"{c} in {n}" for c, n in node.missing.items()])
            yield f"Of {node.read} slots read at {node.switch}, {node.waiting} wait; they lack {workers}."
        elif not node.used:
            yield f"No packet of job epoch {epoch} has reached a slot of {node.switch} yet."


def _unknown_packets(before: Counts, after: Counts) -> Iterator[str]:
    for (switch, tree), counts in sorted(after.items()):
        for verdict in (Verdict.UNADMITTED, Verdict.MALFORMED):
            new = counts[verdict] - before.get((switch, tree), {}).get(verdict, 0)
            if tree == NO_TREE and new:
                rate = f"{new / SAMPLE_S:.0f} packets a second"
                yield f"Switch {switch} drops {rate} as {verdict.label}, of any job."
