# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds what slows a job down that moves: a worker that calls last, or a link that loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from netfold.controller.service.hang_view import Cause, Diagnosis, JobView, MemberView, path_name
from netfold.protocol.listing import listing

MIN_COMMON_CALLS = 5
"""Finished calls that all workers have, from which the last caller is found."""
RECENT_CALLS = 32
"""Finished calls of each worker that are compared: a worker that is late since a short time stands out."""
MIN_LAST_SHARE = 0.6
"""Fraction of the calls in which one worker has to call last, to be named."""
MIN_LAG = 0.2
"""Fraction of the duration of calls by which it has to be late, to be named."""
MIN_LOSSES = 0.02
"""Retransmissions over packets of a worker that is named for them, which has three times the next one's as well."""
MIN_RETRANSMITTED = 5
"""Packets that it has retransmitted at least: fewer say nothing."""
MIN_GLIMPSES = 2
"""Open slots that lack what comes by a link, to name it first: a worker retransmits what others have lost, too."""


def slow(job: JobView) -> Diagnosis | None:
    """Raise no alarm where results arrive: name a worker or a link that slows the job, if one stands out."""
    workers = job.workers
    if not job.moves:
        return None
    return (
        _late(workers)
        or _losing(workers, job)
        or Diagnosis(Cause.NONE, "nothing holds the job up: results arrive", (), tuple(_durations(workers)))
    )


def _losing(workers: Sequence[MemberView], job: JobView) -> Diagnosis | None:
    ranked = sorted(workers, key=lambda m: m.losses, reverse=True)
    if len(ranked) < 2 or ranked[0].losses < MIN_LOSSES or ranked[0].retransmitted < MIN_RETRANSMITTED:
        return None
    evidence = tuple(f"{m.host} retransmits {m.losses:.1%} of its packets." for m in ranked)
    named = _link_lacking(job, MIN_GLIMPSES) or _link_to(ranked, job) or _link_lacking(job, 1)
    if named is None:
        finding = "slow only: packets are lost, and it is unclear on which link"
        return Diagnosis(Cause.SLOW, finding, (), evidence)
    link, why, hosts = named
    return Diagnosis(Cause.SLOW, f"slow only: link {link} loses packets{why}", (link, *hosts), evidence)


def _link_lacking(job: JobView, least: int) -> tuple[str, str, tuple[str, ...]] | None:
    """The link by which most of what open slots lack comes, why, and no hosts."""
    lacking = Counter[str]()
    for node in job.glimpses:
        for child, count in node.lost.items():
            lacking[path_name(node.paths[child])] += count
    link, count = next(iter(lacking.most_common(1)), ("", 0))
    if count < least or 2 * count <= lacking.total():
        return None
    return link, f", most likely: {count} of {lacking.total()} open slots lack what comes by it", ()


def _link_to(ranked: Sequence[MemberView], job: JobView) -> tuple[str, str, tuple[str, ...]] | None:
    """The link by which results come to the workers that lose by far most, and to no others, why, and their hosts."""
    worst = ranked[0]
    losing = tuple(m.host for m in ranked if 3 * m.losses > worst.losses)
    (leaf, *more) = {job.attachments.get(h, "?") for h in losing}
    others = ranked[len(losing) :]
    path: Sequence[str] = ()
    if len(losing) == 1:
        path = (worst.host, leaf)
    elif others and not more and leaf not in {job.attachments.get(m.host) for m in others}:
        path = next((n.paths[leaf] for n in job.glimpses if leaf in n.paths), ())
    if not path:
        return None
    verb = "retransmits" if len(losing) == 1 else "retransmit up to"
    why = f": {listing(losing)} {verb} {worst.losses:.1%}, others at most {others[0].losses:.1%}"
    return path_name(path), why, losing


def _late(workers: Sequence[MemberView]) -> Diagnosis | None:
    """The worker that calls last: it waits least, as the others wait for it."""
    waits = {m.host: _waits(m) for m in workers}
    common = set.intersection(*(set(w) for w in waits.values())) if waits else set()
    if len(common) < MIN_COMMON_CALLS or len(workers) < 2:
        return None
    last = Counter(min(waits, key=lambda h: waits[h][n]) for n in common)
    host, times = last.most_common(1)[0]
    lags = [median(w[n] for h, w in waits.items() if h != host) - waits[host][n] for n in common]
    duration = median(max(w[n] for w in waits.values()) for n in common)
    if times < MIN_LAST_SHARE * len(common) or median(lags) < MIN_LAG * duration:
        return None
    return Diagnosis(
        Cause.SLOW,
        f"slow only: {host} calls last in {times} of {len(common)} calls, {_ms(median(lags))} after the others",
        (host,),
        tuple(_durations(workers)),
    )


def _waits(member: MemberView) -> dict[int, float]:
    """Seconds from the submission to the end of each of the last calls."""
    done = [r for r in member.calls if r.status == "done"]
    return {r.number: r.submitted_ago_s - r.ended_ago_s for r in done[-RECENT_CALLS:]}


def _durations(workers: Sequence[MemberView]) -> Iterator[str]:
    for m in workers:
        if waits := _waits(m):
            yield f"{m.host} waits {_ms(median(waits.values()))} in a call (median of {len(waits)})."


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
