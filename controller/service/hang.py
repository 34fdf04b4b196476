# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Decides what holds a job up, from what its members, its slots and its switches show. Takes values and returns values;
debug.py collects them.

The order of the checks is that of cause and effect: a stopped process makes no call, a call that one worker does not
make leaves slots open, and open slots alone are a matter of the network.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from netfold.controller.service.call_status import size, what
from netfold.controller.service.hang_view import Cause, Diagnosis, JobView, MemberView, path_name
from netfold.controller.service.slowness import slow
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.listing import listing

SILENT_S = 2.0
"""Seconds after which the process of a worker counts as stopped: it sends something every 0.3 s."""
MAX_EVIDENCE = 32
"""Lines of evidence: a job has up to 1,024 members, of which each may have one."""


def diagnose(job: JobView) -> Diagnosis:
    found = next(diagnosis for check in _CHECKS if (diagnosis := check(job)))
    return replace(found, evidence=(*_first(found.evidence), *_always(job)))


# ---- the job, its members and its switches -------------------------------------------------------------------


def _ended(job: JobView) -> Diagnosis | None:
    if job.state in ("failed", "done", "canceled"):
        return Diagnosis(
            Cause.ENDED, f"the job has ended ({job.state}): {job.reason or 'no reason is known'}"
        )
    if job.state == "queued":
        return Diagnosis(Cause.QUEUED, f"the job waits for capacity: {job.reason}")
    return None


def _absent(job: JobView) -> Diagnosis | None:
    absent = _hosts(job, lambda m: not m.joined and not m.connected)
    if not absent:
        return None
    return Diagnosis(
        Cause.ABSENT,
        f"{listing(absent)} {_have(absent)} not joined: the program there has not started, or not come to a call",
        absent,
    )


def _process_ended(job: JobView) -> Diagnosis | None:
    ended = _hosts(job, lambda m: m.joined and not m.connected)
    if not ended:
        return None
    views = [m for m in job.members if m.host in ended]
    return Diagnosis(
        Cause.PROCESS,
        f"the process on {listing(ended)} is gone: its stream to the controller has ended without leaving the job",
        ended,
        tuple(
            f"{m.host} sent its last update {_ago(m.update_age_s)}; its lease is {job.lease_s:g} s."
            for m in views
        ),
    )


def _stopped(job: JobView) -> Diagnosis | None:
    silent = _hosts(job, lambda m: m.silent_s > SILENT_S)
    deaf = _hosts(job, lambda m: not m.answered)
    stopped = tuple(dict.fromkeys((*silent, *deaf)))
    if not stopped:
        return None
    views = {m.host: m for m in job.members}
    evidence = [f"{h}'s program has sent its agent nothing for {views[h].silent_s:.1f} s." for h in silent]
    evidence += [
        f"{h} is connected, did not answer a request, and sent its last update {_ago(views[h].update_age_s)}."
        for h in deaf
    ]
    return Diagnosis(
        Cause.STOPPED,
        f"the process on {listing(stopped)} is stopped, or its host hangs or is cut off from the controller",
        stopped,
        tuple(evidence),
    )


def _unready(job: JobView) -> Diagnosis | None:
    if not (job.unready or job.failed or job.state == "installing"):
        return None
    if any(m.moved for m in job.members):
        return None
    evidence = tuple(f"Switch {switch} is not ready: {why}." for switch, why in job.unready.items())
    if names := tuple(dict.fromkeys((*job.unready, *job.failed))):
        return Diagnosis(
            Cause.SWITCH, f"{listing(names)} of its trees is down, or not ready", names, evidence
        )
    return Diagnosis(Cause.SWITCH, "its switches have not taken its entries yet", (), evidence)


# ---- calls ---------------------------------------------------------------------------------------------------


def _result_missing(job: JobView) -> Diagnosis | None:
    """Find workers that wait for a call that others have finished: its sum exists, and has not reached them."""
    workers = job.workers
    newest = max((m.next_call for m in workers), default=0)
    behind = tuple(m for m in workers if m.waits and m.next_call < newest)
    if not behind or len(behind) == len(workers):
        return None
    hosts = tuple(m.host for m in behind)
    links = _common_links(job, hosts)
    evidence = [
        f"{_waiting(m)}; {len(workers) - len(behind)} of {len(workers)} workers have finished that call."
        for m in behind
    ]
    lost = f"the result of call {behind[0].next_call:,} does not reach {listing(hosts)}"
    finding = f"{lost}: link {listing(links)} loses packets"
    return Diagnosis(Cause.LINK, finding, (*links, *hosts), tuple(evidence))


def _not_called(job: JobView) -> Diagnosis | None:
    workers = job.workers
    waiting = [m for m in workers if m.waits]
    if not waiting:
        return None
    number = max(m.next_call for m in waiting)
    idle = [m for m in workers if not m.waits and m.next_call <= number]
    if not idle:
        return None
    those = next(m for m in waiting if m.next_call == number)
    assert those.call is not None
    longest = max(m.call.for_s for m in waiting if m.call is not None)
    call = f"call {number:,} ({what(those.call)})"
    hosts = tuple(m.host for m in idle)
    evidence = tuple(_idle_evidence(m) for m in idle)
    waiters = tuple(m.host for m in waiting)
    if len(idle) > len(waiting):
        return Diagnosis(
            Cause.UNCLEAR,
            f"only {listing(waiters)} is in {call}, for {longest:.0f} s: the others do not make it, or "
            f"{listing(hosts)} are late",
            waiters,
            (*evidence, *_where_waiting(waiting)),
        )
    return Diagnosis(
        Cause.NOT_CALLED,
        f"{listing(hosts)} {_have(hosts)} not made {call}, which {len(waiting)} of {len(workers)} workers have waited "
        f"for during {longest:.0f} s",
        hosts,
        evidence,
    )


def _idle_evidence(member: MemberView) -> str:
    text = f"{member.host} has finished {member.next_call:,} calls and is not in a call"
    last = member.last
    if last is not None and last.ended_ago_s >= 0:
        failed = "" if last.status == "done" else f" with {last.status}"
        text += f"; its last one ({last.kind}, {size(last.bytes)}) ended{failed} {last.ended_ago_s:.1f} s ago"
    return f"{text}; its program is at {member.location}." if member.location else f"{text}."


def _where_waiting(waiting: Sequence[MemberView]) -> Iterator[str]:
    for m in waiting:
        if m.location:
            yield f"{m.host}'s program is at {m.location}."


def _other_call(job: JobView) -> Diagnosis | None:
    """Find workers whose call of the same number is another one. Where no call is refused for it, sizes differ so much
    that the packets do not meet."""
    groups: dict[tuple[str, int, str, int], list[MemberView]] = defaultdict(list)
    waiting = [m for m in job.workers if m.waits and m.call is not None and m.call.kind]
    for m in waiting:
        assert m.call is not None
        record = next((r for r in m.calls if r.status == "pending"), pb.CallRecord())
        groups[m.call.kind, m.call.bytes, record.dtype, record.context].append(m)
    if len(groups) < 2:
        return None
    by_size = sorted(groups.items(), key=lambda g: len(g[1]))
    (key, few), (common, many) = by_size[0], by_size[-1]
    evidence = tuple(
        f"{listing([m.host for m in members])}: {_described(k)}, in call {members[0].next_call:,}."
        for k, members in by_size
    )
    hosts = tuple(m.host for m in few)
    if len(few) == len(many):
        return Diagnosis(
            Cause.OTHER_CALL,
            f"the workers make different calls, half of them each: {_described(key)}, and {_described(common)}",
            tuple(m.host for m in waiting),
            evidence,
        )
    return Diagnosis(
        Cause.OTHER_CALL,
        f"{listing(hosts)} makes another call than the others: {_described(key)} in place of {_described(common)}",
        hosts,
        (*evidence, *_where_waiting(few)),
    )


def _described(key: tuple[str, int, str, int]) -> str:
    kind, nbytes, dtype, context = key
    return (
        f"{kind} of {nbytes:,} bytes"  # exact: calls that differ are compared
        + (f" {dtype}" if dtype else "")
        + (f", context {context}" if context else "")
    )


def _worker_left(job: JobView) -> Diagnosis | None:
    """Find calls that failed because a worker has left the job, after which programs may wait for something else."""
    left = tuple(m.host for m in job.members if m.left)
    failed = [
        m for m in job.workers if not m.waits and m.last is not None and m.last.status == "workers_left"
    ]
    if not left or not failed:
        return None
    return Diagnosis(
        Cause.LEFT,
        f"{listing(left)} {_have(left)} left the job, and calls of {listing([m.host for m in failed])} failed for it",
        left,
        tuple(map(_idle_evidence, failed)),
    )


def _mismatch(job: JobView) -> Diagnosis | None:
    """Find calls that failed because they differ, after which programs may wait for something else."""
    ends = {m.host: m.last for m in job.workers if m.last is not None and not m.waits}
    failed = {h: r for h, r in ends.items() if r.status in ("mismatch", "call_desync")}
    if not failed:
        return None
    described = {h: _described((r.kind, r.bytes, r.dtype, r.context)) for h, r in ends.items()}
    counts = Counter(described.values())
    common, _ = counts.most_common(1)[0]
    odd = tuple(h for h, text in described.items() if text != common)
    evidence = tuple(f"{h}: {text}, ended with {ends[h].status}." for h, text in described.items())
    if len(counts) == 1 or counts[common] * 2 <= len(described):
        finding, odd = "the workers made different calls, which failed with a mismatch", tuple(failed)
    else:
        finding = (
            f"{listing(odd)} made another call than the others: {described[odd[0]]} in place of {common}"
        )
    return Diagnosis(Cause.OTHER_CALL, finding, odd, evidence)


def _no_call(job: JobView) -> Diagnosis | None:
    workers = job.workers
    if not workers or any(m.waits for m in workers):
        return None
    numbers = sorted({m.next_call for m in workers})
    finished = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
    return Diagnosis(
        Cause.NO_CALL,
        f"no worker is in a call (all have finished {finished}): the programs compute, or wait for something else than "
        "netfold",
        (),
        tuple(map(_idle_evidence, workers)),
    )


# ---- the network ---------------------------------------------------------------------------------------------


def _refused(job: JobView) -> Diagnosis | None:
    if not job.refusals:
        return None
    switches = tuple(dict.fromkeys(r.switch for r in job.refusals))
    evidence = tuple(
        f"At {r.switch} {r.per_second:.0f} packets a second ({r.verdict}) {r.meaning}." for r in job.refusals
    )
    return Diagnosis(
        Cause.REFUSED,
        f"{listing(switches)} refuses packets of the job ({job.refusals[0].verdict})",
        switches,
        evidence,
    )


def _lost(job: JobView) -> Diagnosis | None:
    """Find children whose contributions open slots lack although they were sent, else workers that lack a sum."""
    views = {m.host: m for m in job.members}
    links: dict[str, str] = {}
    for node in job.slots:
        for child, count in node.lost.items():
            link = path_name(node.paths[child])
            sender = views.get(child)
            did = f"; {child} has retransmitted {sender.retransmitted} packets meanwhile" if sender else ""
            links[link] = (
                f"Of {node.waiting} open slots of tree {node.tree} at {node.switch}, {count} lack {child}{did}."
            )
    if not links:
        return _undelivered(job)
    return Diagnosis(
        Cause.LINK,
        f"link {listing(list(links))} loses packets, in one of its directions: sums lack contributions that come by it",
        tuple(links),
        tuple(links.values()),
    )


def _undelivered(job: JobView) -> Diagnosis | None:
    """Find workers that wait for a slot that has its sum, where others do not."""
    lacking = {h for n in job.slots for h in n.undelivered}
    hosts = tuple(m.host for m in job.workers if m.waits and m.host in lacking)
    if not hosts or len(hosts) == len(job.workers):
        return None
    links = _common_links(job, hosts)
    evidence = tuple(
        f"{_waiting(m)}; the root of its tree has the sum." for m in job.workers if m.host in hosts
    )
    finding = f"sums do not reach {listing(hosts)}: link {listing(links)} loses packets"
    return Diagnosis(Cause.LINK, finding, (*links, *hosts), evidence)


def _unclear(job: JobView) -> Diagnosis:
    """Give the evidence where all are in one call, and no slot lacks what was sent."""
    workers = job.workers
    if not workers:
        return Diagnosis(Cause.UNCLEAR, "unclear: no worker reports its calls")
    unread = [n for n in job.slots if n.error]
    evidence = [f"The slots of {n.switch} cannot be read: {n.error}." for n in unread]
    evidence += [
        f"Of {n.waiting} open slots of tree {n.tree} at {n.switch}, {count} lack {child}, which may not have sent yet."
        for n in job.slots
        for child, count in n.missing.items()
    ]
    evidence += [f"{_waiting(m)}." for m in workers if m.waits]
    finding = (
        "unclear: all workers are in one call, and no slot that was read lacks what was sent: results may be lost on "
        "their way from the root, or a parameter server adds up"
    )
    if any(m.waits and m.call is not None and not m.call.kind for m in workers):
        finding = "calls wait for a new job epoch, which the controller has not started"
    return Diagnosis(Cause.UNCLEAR, finding, (), tuple(evidence))


# ---- helpers -------------------------------------------------------------------------------------------------


def _first(evidence: Sequence[str]) -> Iterator[str]:
    yield from evidence[:MAX_EVIDENCE]
    if len(evidence) > MAX_EVIDENCE:
        yield f"And {len(evidence) - MAX_EVIDENCE:,} more."


def _always(job: JobView) -> Iterator[str]:
    """Name the members whose calls are unknown, which limits the finding."""
    if silent := _hosts(
        job, lambda m: not m.parameter_server and m.call is None and m.connected and m.answered
    ):
        yield f"Not known: the calls of {listing(silent)}, which does not report them."


def _hosts(job: JobView, condition: Callable[[MemberView], bool]) -> tuple[str, ...]:
    return tuple(m.host for m in job.members if not m.left and condition(m))


def _common_links(job: JobView, hosts: Sequence[str]) -> tuple[str, ...]:
    """The links by which results come to these hosts: those of the hosts, or of their leaf if it has no others."""
    leaves = {job.attachments.get(h, "?") for h in hosts}
    if len(leaves) == 1 and len(hosts) > 1:
        (leaf,) = leaves
        if {m.host for m in job.workers if job.attachments.get(m.host) == leaf} <= set(hosts):
            return (f"to {leaf}",)
    return tuple(path_name((job.attachments.get(h, "?"), h)) for h in hosts)


def _have(hosts: Sequence[str]) -> str:
    return "has" if len(hosts) == 1 else "have"


def _ago(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f} s ago"


def _waiting(member: MemberView) -> str:
    assert member.call is not None
    waits = f"{member.host} waits in call {member.next_call:,} for {member.call.for_s:.1f} s"
    return f"{waits}, and has retransmitted {member.retransmitted} packets meanwhile"


_CHECKS: tuple[Callable[[JobView], Diagnosis | None], ...] = (
    _ended,
    _absent,
    _process_ended,
    _stopped,
    _unready,
    slow,  # it has a finding whenever results arrive, so in the checks below none do
    _result_missing,
    _not_called,
    _other_call,
    _worker_left,
    _mismatch,
    _no_call,
    _refused,
    _lost,
    _unclear,
)
