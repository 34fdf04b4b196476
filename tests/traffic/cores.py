# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's core in virtual time, for tests: packets in, packets out, no sockets."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from netfold.protocol.constants import TARGET_NONE, TARGETED
from netfold.protocol.target import LaneTarget, Targets
from netfold.protocol.wire import (
    FRAME_OVERHEAD_BYTES,
    FRAMING_BYTES,
    VERSION,
    Flag,
    Kind,
    Verdict,
    packet,
)
from netfold.traffic.congestion import Congestion
from netfold.traffic.engine.blocks import Blocks
from netfold.traffic.engine.engine import (
    NEVER,
    CallOutcome,
    Status,
    Totals,
    TreeReport,
    departures_of,
    request_of,
    to_engine_assignment,
)
from netfold.traffic.engine.native import HEADERS, library
from netfold.traffic.membership.assignment import Assignment, TreeAssignment
from netfold.traffic.numerics import BlockFloat, ReduceOp, Scheme
from tests.slot_oracle import SlotPool, Sum

LANES = 4
MIN_FRAME_BYTES = 60
ROOM = 1 << 10
"""Packets that a core can send at once."""


class _Out(ctypes.Structure):
    _fields_ = HEADERS.fields("nf_out")


def code() -> ctypes.CDLL:
    """The core's own functions."""
    found = library()
    HEADERS.declare(found, "nf_core_", nf_totals=Totals, nf_tree_report=TreeReport)
    return found


def assignment(
    rank: int = 0,
    workers: int = 1,
    lanes: int = LANES,
    slots: int = 8,
    shares: tuple[float, ...] = (1.0,),
    epoch: int = 1,
    window: int | None = None,
    rate_mbps: float = 0.0,
    targets: Targets = Targets.OFF,
) -> Assignment:
    trees = tuple(
        TreeAssignment(
            40 + number, share, slots, window or slots // 2, rank * 3 + number, f"10.0.0.{number + 1}"
        )
        for number, share in enumerate(shares)
    )
    return Assignment("test", epoch, 61440, lanes, rank, workers, trees, rate_mbps, targets=targets)


class Core:
    """A worker without sockets."""

    def __init__(self, congestion: Congestion = Congestion.FIXED, rounds: int | None = None) -> None:
        self._code = code()
        self._core = self._code.nf_core_create()
        self._congestion = congestion
        self._rounds = rounds
        self.lanes = 0
        self._out = (_Out * ROOM)()
        self._arrays: list[np.ndarray] = []  # results are written there as long as the core lives

    def __del__(self) -> None:
        self._code.nf_core_destroy(self._core)

    def assign(self, part: Assignment, now: float = 0.0) -> None:
        self.lanes = part.lanes
        epoch = to_engine_assignment(part, [tree.destination for tree in part.trees], self._congestion)
        if self._rounds:
            epoch.rounds = self._rounds
        assert self._code.nf_core_assign(self._core, ctypes.byref(epoch), now) == 0

    def set_departures(self, part: Assignment) -> None:
        """Those of an assignment's `workers_left`."""
        self._code.nf_core_set_departures(self._core, part.epoch, ctypes.byref(departures_of(part)))

    def fail_epoch_waiters(self) -> None:
        self._code.nf_core_fail_epoch_waiters(self._core)

    def submit(
        self,
        array: np.ndarray,
        op: ReduceOp = ReduceOp.SUM,
        scheme: Scheme | None = None,
        deadline: float = NEVER,
        *,
        lossy: bool = False,
        follows_all: bool = False,
        warm_up: bool = False,
        remainder: np.ndarray | None = None,
        blocks: Blocks | None = None,
    ) -> int:
        request = request_of(
            array,
            op,
            scheme or BlockFloat(),
            deadline,
            lossy=lossy,
            follows_all=follows_all,
            warm_up=warm_up,
            remainder=remainder,
            blocks=blocks,
        )
        self._arrays += [array] if remainder is None else [array, remainder]
        handle: int = self._code.nf_core_submit(self._core, ctypes.byref(request))
        return handle

    def outcome(self, call: int) -> CallOutcome:
        return CallOutcome.from_buffer_copy(
            ctypes.string_at(self._code.nf_core_outcome(call), ctypes.sizeof(CallOutcome))
        )

    def status(self, call: int) -> Status:
        """Without a copy of all of the outcome: loops look at each call after each step."""
        return Status(CallOutcome.from_address(self._code.nf_core_outcome(call)).status)

    def receive(self, payload: bytes, now: float, endpoint: int = 0, marked: bool = False) -> None:
        aligned = np.frombuffer(payload.ljust(-(-len(payload) // 4) * 4, b"\0"), np.uint32).copy()
        self._code.nf_core_receive(self._core, endpoint, aligned.ctypes.data, len(payload), int(marked), now)

    def send(self, now: float, room: int = ROOM) -> list[tuple[int, bytes]]:
        """The packets to send now, with their endpoints, `room` of them at most."""
        out = self._out
        count = self._code.nf_core_send(self._core, out, room, now)
        return [(out[i].endpoint, ctypes.string_at(out[i].packet, out[i].length)) for i in range(count)]

    def process(self, now: float) -> None:
        self._code.nf_core_process(self._core, now)

    def next_deadline(self, now: float) -> float:
        due: float = self._code.nf_core_next_deadline(self._core, now)
        return due

    def coalescing_delay(self) -> float:
        seconds: float = self._code.nf_core_coalescing_delay(self._core)
        return seconds

    def totals(self) -> Totals:
        found: Totals = self._code.nf_core_totals(self._core)
        return found

    def report(self, tree: int = 0) -> TreeReport:
        found: TreeReport = self._code.nf_core_report(self._core, tree)
        return found

    def abort(self) -> None:
        self._code.nf_core_abort(self._core)


def result(
    chunk: int, slots: int, tree: int = 40, epoch: int = 1, lanes: int = LANES, **fields: int
) -> bytes:
    """The RESULT of a chunk, zeros in all lanes unless given."""
    record = np.zeros(1, packet(lanes))
    record["version_kind"] = VERSION << 4 | Kind.RESULT
    record["tag"], record["slot"], record["lanes"] = epoch << 20 | chunk // slots, chunk % slots, lanes
    record["tree"] = tree
    for name, value in fields.items():
        record[name] = value
    return record.tobytes()


def place(chunk: int, slots: int) -> int:
    """The place of a chunk in the main stream of its tree; in the control stream from -1 downwards: -1, -2 ..."""
    channels = slots // 2
    control = 0 if channels == 1 else max(1, channels // 8)
    main = channels - control
    turn, channel = divmod(chunk, channels)
    return turn * main + channel if channel < main else -1 - (turn * control + channel - main)


def number_of(place: int, slots: int) -> int:
    """The chunk at a place."""
    channels = slots // 2
    control = 0 if channels == 1 else max(1, channels // 8)
    main = channels - control
    if place >= 0:
        return place // main * channels + place % main
    return (-1 - place) // control * channels + main + (-1 - place) % control


def chunk_of(payload: bytes, slots: int, lanes: int = LANES) -> int:
    return _number(np.frombuffer(payload, packet(lanes))[0], slots)


def place_of(payload: bytes, slots: int) -> int:
    return place(chunk_of(payload, slots), slots)


def _number(record: np.void, slots: int) -> int:
    return int(record["tag"] & 0xFFFFF) * slots + int(record["slot"])


def becomes(record: np.ndarray, found: Sum) -> None:
    record["lane"], record["exponent"], record["flags"] = found.lanes, found.exponent, int(found.flags)


def link_bytes(payload: bytes) -> int:
    """Bytes of a packet on a link of Ethernet, with preamble, check sequence and gap. Short frames are padded."""
    return max(MIN_FRAME_BYTES, FRAME_OVERHEAD_BYTES + len(payload)) + FRAMING_BYTES


@dataclass
class Fabric:
    """Cores, and above them one root for each tree, or two inner nodes and a root; packets between them are lost,
    duplicated and reordered by `rng`."""

    cores: list[Core]
    rng: random.Random
    loss: float = 0.0
    duplicate: float = 0.0
    cut: float = 1.0  # of the results whose lanes a worker does not want
    two_levels: bool = False
    now: float = 0.0
    in_transit: list[tuple[str, int, int, np.ndarray]] = field(
        default_factory=list
    )  # (to, which, endpoint, record)
    parts: list[Assignment] = field(default_factory=list)
    unreachable: set[int] = field(default_factory=set)  # workers whose packets are all lost
    accepted: dict[int, Callable[[int], bool]] = field(
        default_factory=dict
    )  # by worker: which results arrive, by their place
    refused: dict[int, set[int]] = field(default_factory=dict)  # by worker: targets of results that are lost
    closings_refused: int = 0
    sent: list[int] = field(default_factory=lambda: [0] * 64)  # by worker
    bytes_up: list[int] = field(default_factory=lambda: [0] * 64)  # of frames on a link of Ethernet
    bytes_down: list[int] = field(default_factory=lambda: [0] * 64)

    def assign(self, parts: list[Assignment]) -> None:
        """Starts an epoch at the nodes; packets stay in transit."""
        self.parts = parts
        trees = parts[0].trees
        self.levels = self.two_levels and len(parts) > 1
        self.half = (len(parts) + 1) // 2
        sides = [self.half, len(parts) - self.half] if self.levels else []
        self.inner = [[self.pool(tree.slots, n, root=False) for n in sides] for tree in trees]
        above = 2 if self.levels else len(parts)
        self.roots = [self.pool(tree.slots, above, root=True) for tree in trees]

    def begin(self, parts: list[Assignment]) -> None:
        """Starts an epoch at the nodes, then at the workers."""
        self.assign(parts)
        for core, part in zip(self.cores, parts, strict=True):
            core.assign(part, self.now)

    def pool(self, slots: int, children: int, root: bool):
        return SlotPool(slots, self.parts[0].lanes, children, root, targets=True)

    def step(self) -> bool:
        """Lets one packet arrive, or time pass. False: there is no event."""
        self.collect()
        if self.in_transit:
            self._arrive(*self.in_transit.pop(self.rng.randrange(min(len(self.in_transit), 6))))
            self.now += 0.0001
            return True
        due = min(core.next_deadline(self.now) for core in self.cores)
        if due >= NEVER:
            return False
        self.now = max(due, self.now + 1e-6)
        return True

    def collect(self) -> None:
        """Sends what the workers have to send now."""
        for rank, core in enumerate(self.cores):
            core.process(self.now)
            for endpoint, payload in core.send(self.now):
                self.sent[rank] += 1
                self.bytes_up[rank] += link_bytes(payload)
                if rank not in self.unreachable:
                    record = self._record(payload, core.lanes)
                    self.in_transit.append(("node", rank, endpoint, record))

    def _record(self, payload: bytes, lanes: int) -> np.ndarray:
        """A packet as a record; lanes that a short one does not have are at random."""
        missing = 16 + 4 * lanes - len(payload)
        assert missing in (0, 4 * lanes)
        return np.frombuffer(payload + self.rng.randbytes(missing), packet(lanes)).copy()

    def _result_for(self, rank: int, record: np.ndarray) -> bytes:
        """A result as a switch delivers it to a worker. It may cut lanes that the worker does not want."""
        target, flags = LaneTarget.of_field(int(record[0]["lanes"])), int(record[0]["flags"])
        is_cut = target and not target.wants(rank) and self.rng.random() < self.cut
        return record.tobytes()[: 16 if target and (is_cut or not flags & Flag.DATA) else None]

    def _arrive(self, to: str, which: int, endpoint: int, record: np.ndarray) -> None:
        if self.rng.random() < self.loss:
            return
        if self.rng.random() < self.duplicate:
            self.in_transit.append((to, which, endpoint, record.copy()))
        if to == "worker":
            slots = self.parts[0].trees[endpoint].slots
            if which in self.accepted and not self.accepted[which](place(_number(record[0], slots), slots)):
                return
            if int(record[0]["lanes"]) in self.refused.get(which, ()):
                self.closings_refused += int(record[0]["lanes"]) == LaneTarget(TARGET_NONE).field
                return
            payload = self._result_for(which, record)
            self.bytes_down[which] += link_bytes(payload)
            self.cores[which].receive(payload, self.now, endpoint)
            self.cores[which].process(self.now)
            return
        if int(record[0]["tag"]) >> 20 != self.parts[0].epoch:
            return  # stale_epoch
        side = int(which >= self.half)
        if to == "root" or not self.levels:
            pool, bit = self.roots[endpoint], which
        else:
            pool, bit = self.inner[endpoint][side], which - side * self.half
        verdict = self.take(pool, bit, record)
        if verdict is None:
            return
        if to == "node" and self.levels:
            child = 2 + which if verdict is Verdict.FORWARDED else side
            self.in_transit.append(("root", child, endpoint, record))
            return
        record["version_kind"] = VERSION << 4 | Kind.RESULT
        for rank in self._receivers(which, verdict):
            self.in_transit.append(("worker", rank, endpoint, record.copy()))

    def take(self, pool: SlotPool, bit: int, record: np.ndarray) -> Verdict | None:
        """A node's verdict on a packet; `record` becomes the packet that leaves the node. None: none does."""
        row = record[0]
        is_short = row["lanes"] & TARGETED and not row["flags"] & Flag.DATA
        lanes = None if is_short else row["lane"]
        done = pool.gradient(
            int(row["tag"]), int(row["slot"]), bit, int(row["flags"]), int(row["exponent"]), lanes
        )
        if done.packet is None:
            return None
        becomes(record, done.packet)
        return done.verdict

    def _receivers(self, child: int, verdict: Verdict) -> range:
        everyone = range(len(self.parts))
        if verdict is Verdict.RESULT_SENT:
            return everyone
        if not self.levels:
            return range(child, child + 1)
        side = child if child < 2 else int(child - 2 >= self.half)  # 2 ...: workers under an inner node
        return everyone[: self.half] if side == 0 else everyone[self.half :]
