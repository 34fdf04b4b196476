# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""messages.h for the agent, and what its messages are made of."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from enum import IntEnum
from pathlib import Path

from netfold.traffic.congestion import Congestion
from netfold.traffic.engine import recipe
from netfold.traffic.engine.c_headers import Headers
from netfold.traffic.engine.call_log import RawCallRecord, record_of
from netfold.traffic.engine.engine import (
    SCHEMES,
    EngineAssignment,
    EngineDepartures,
    Status,
    Totals,
    TreeReport,
    departures_of,
    progress_of,
    stats_of,
    to_engine_assignment,
)
from netfold.traffic.membership.assignment import Assignment
from netfold.traffic.membership.base import Stats
from netfold.traffic.membership.calls import CALL_TIMES, CallRecord
from netfold.traffic.numerics import Fixed, Scheme

_HEADERS = Headers(Path(__file__).parent / "messages.h", *(recipe.FOLDER / name for name in recipe.HEADERS))
VERSION = 5
CALLS_MAX = 1024
BODY_BYTES = 131072
RINGS_MAX = 16
HOSTS_BYTES = 128


class MessageType(IntEnum):
    """enum na_message_type."""

    HELLO = 1
    HOST = 3
    SUBMIT = 4
    JOB = 5
    JOIN = 6
    PREPARE = 7
    READY = 8
    ASSIGN = 9
    DEPARTURES = 10
    QUEUE_PAIRS = 11
    RING = 12
    REPORT = 13
    NEW_EPOCH = 14
    LEAVE = 15
    ENDED = 16
    CALLS = 17


class Header(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_header")


class HelloMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_hello")


class AssignMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_assign", nf_assignment=EngineAssignment)


class DeparturesMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_departures", nf_departures=EngineDepartures)


class QueuePair(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_queue_pair")


class QueuePairsMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_queue_pairs", na_queue_pair=QueuePair)


class RingNeighbors(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_neighbors")


class RingMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_ring", na_neighbors=RingNeighbors)


class NewEpochMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields("na_new_epoch")


class ReportMessage(ctypes.Structure):
    _fields_ = _HEADERS.fields(
        "na_report", nf_totals=Totals, nf_tree_report=TreeReport, nf_call_record=RawCallRecord
    )


def assign_message(
    assignment: Assignment, scheme: Scheme, lease_s: float, float_dtypes: int = 0
) -> AssignMessage:
    """`scheme`: of floats. Raises InvalidAssignmentError."""
    return AssignMessage(
        lease_ms=round(lease_s * 1000),
        scheme=SCHEMES[type(scheme)],
        bits=scheme.bits if isinstance(scheme, Fixed) else 0,
        float_dtypes=float_dtypes,
        address=assignment.address.encode(),
        assignment=to_engine_assignment(assignment, assignment.roots, Congestion.PANAMA),
    )


def departures_message(assignment: Assignment) -> DeparturesMessage:
    left = assignment.workers_left
    assert left is not None
    return DeparturesMessage(
        epoch=assignment.epoch,
        calls=left.calls,
        departures=departures_of(assignment),
        hosts=listed(left.hosts).encode(),
    )


def listed(hosts: Sequence[str]) -> str:
    """With commas; as many as fit NA_HOSTS_BYTES, then "..."."""
    text = ",".join(hosts)
    if len(text) < HOSTS_BYTES:
        return text
    whole, _, _ = text[: HOSTS_BYTES - len(",...")].rpartition(",")
    return f"{whole},..."


def calls_of(body: bytes, later_s: float) -> list[CallRecord]:
    """The calls of a CALLS message. `later_s`: this machine's clock less the worker's. Raises ValueError."""
    size = ctypes.sizeof(RawCallRecord)
    if len(body) % size:
        raise ValueError(f"CALLS of {len(body)} bytes; expected a multiple of {size}")
    raws = (RawCallRecord.from_buffer_copy(body, at) for at in range(0, len(body), size))
    return [_record_here(raw, later_s) for raw in raws]


def _record_here(raw: RawCallRecord, later_s: float) -> CallRecord:
    """The record with times of this machine's clock."""
    try:
        record = record_of(raw, Status)
    except IndexError:
        raise ValueError("a call of unknown dtype or state") from None
    return record._replace(**{name: then + later_s for name in CALL_TIMES if (then := getattr(record, name))})


def stats_of_report(report: ReportMessage, silent_s: Callable[[], float], later_s: float) -> Stats:
    """`later_s`: this machine's clock less the worker's."""
    totals = report.totals
    totals.call_submitted += later_s
    trees = tuple(stats_of(tree) for tree in report.trees[: report.tree_count])
    count = report.recent_count

    def recent(most: int) -> list[CallRecord]:
        return [_record_here(raw, later_s) for raw in report.recent[max(0, count - most) : count]]

    return Stats(
        calls=report.calls,
        chunks=report.chunks,
        retransmits=totals.retransmits,
        reencoded_chunks=totals.reencoded_chunks,
        restarts=totals.restarts,
        late=totals.late_contributions,
        elements=report.elements,
        bytes=report.bytes,
        seconds=report.seconds,
        next_call=totals.next_call,
        progress=lambda: progress_of(totals),
        recent=recent,
        silent_s=silent_s,
        trees=lambda: trees,
        socket_errors=lambda: report.socket_errors,
    )
