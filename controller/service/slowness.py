# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Finds what slows a job down that moves: a worker that calls last, or a link that loses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from netfold.controller.service.hang_view import Cause, HangFinding, JobView, MemberView, link_name

MIN_COMMON_CALLS = 5
"""Finished calls that all workers have, from which the last caller is found."""
RECENT_CALLS = 32
"""Finished calls of each worker that are compared: a worker that is late since a short time stands out."""
MIN_LAST_SHARE = 0.6
"""Fraction of the calls in which one worker has to call last, to be named."""
MIN_LAG = 0.2
"""Fraction of the duration of calls by which it has to be late, to be named."""
MIN_LOSSES = 0.02
"""Retransmissions over results of a worker that is named for them, which has three times the others' as well."""


def slow(job: JobView) -> HangFinding | None:
    """Raise no alarm where results arrive: name a worker or a link that slows the job, if one stands out."""
    workers = job.workers
    if not job.moves:
        return None
    return (
        _late(workers)
        or _losing(workers, job)
        or HangFinding(Cause.NONE, "nothing holds the job up: results arrive", (), tuple(_durations(workers)))
    )


def _losing(workers: Sequence[MemberView], job: JobView) -> HangFinding | None:
    if len(workers) < 2:
        return None
    ranked = sorted(workers, key=lambda m: m.losses)
    worst, others = ranked[-1], median(m.losses for m in ranked[:-1])
    evidence = [f"{m.host} retransmits {m.losses:.1%} of its packets." for m in reversed(ranked)]
    if worst.losses < MIN_LOSSES:
        return None
    if worst.losses >= 3 * others:
        link = link_name((worst.host, job.attachments.get(worst.host, "?")))
        return HangFinding(
            Cause.SLOW,
            f"slow only: link {link} loses packets: {worst.host} retransmits {worst.losses:.1%}, others {others:.1%}",
            (link, worst.host),
            tuple(evidence),
        )
    missing: Counter[str] = Counter()
    for node in job.glimpses:
        open_below = {n.switch for n in job.glimpses if n.tree == node.tree and n.missing}
        for child, count in node.lost.items():
            if child in open_below:
                continue
            missing[link_name(node.paths.get(child, (child, node.switch)))] += count
    if missing:
        link, count = missing.most_common(1)[0]
        if count > 0.5 * sum(missing.values()):
            return HangFinding(
                Cause.SLOW,
                f"slow only: link {link} loses packets, most likely: {count} of {sum(missing.values())} open slots "
                "lack what comes by it",
                (link,),
                tuple(evidence),
            )
    return HangFinding(
        Cause.SLOW, "slow only: packets are lost, and it is unclear on which link", (), tuple(evidence)
    )


def _late(workers: Sequence[MemberView]) -> HangFinding | None:
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
    return HangFinding(
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
