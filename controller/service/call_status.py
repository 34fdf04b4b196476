# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Explains which call the workers of a job are in, by their last heartbeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from netfold.controller.lifecycle.member_status import CallStatus, Progress
from netfold.protocol.listing import listing


def calls_step(reports: Mapping[str, Progress], now_s: float) -> Iterator[str]:
    """The call that some workers wait for and others have not made; no step if they are in none."""
    known = {host: p for host, p in reports.items() if p.call is not None}
    waiting = {h: p for h, p in known.items() if p.call is not None and p.call.in_call}
    if not waiting:
        return
    number = max(p.next_call for p in waiting.values())
    those = {h: p for h, p in waiting.items() if p.next_call == number}
    longest = max(_for_s(p, now_s) for p in those.values())
    host = next(iter(those))
    status = those[host].call
    assert status is not None
    step = (
        f"Call {number:,} ({what(status)}) is waited for by {len(those)} of {len(known)} for {longest:.0f} s"
    )
    others = [f"{h} {_where(p, number)}" for h, p in known.items() if h not in those]
    yield f"{step}; {listing(others)}." if others else f"{step}."


def what(call: CallStatus) -> str:
    return f"{call.kind}, {size(call.bytes)}" if call.kind else "before its job epoch"


def size(nbytes: int) -> str:
    """A size in a unit of its magnitude, decimal as rates are."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return f"{nbytes} B"


def _for_s(progress: Progress, now_s: float) -> float:
    assert progress.call is not None
    return progress.call.for_s + max(0.0, now_s - progress.at_s)


def _where(progress: Progress, number: int) -> str:
    assert progress.call is not None
    if progress.call.in_call:
        return f"is in call {progress.next_call:,}"
    if progress.next_call > number:
        return f"has finished it ({progress.next_call:,} calls)"
    return f"has finished {progress.next_call:,} calls and is not in a call"
