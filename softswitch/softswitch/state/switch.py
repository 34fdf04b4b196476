# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The switch around a pipeline: ports, queues, the traffic manager, events. The C side is runtime/switch.h."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping

from softswitch.build import capi
from softswitch.build.native import core_library
from softswitch.errors import InvalidArgumentError, ResourceExhaustedError
from softswitch.state import values
from softswitch.state.entities import DigestEvent, Event, IdleEvent
from softswitch.state.pipeline import Pipeline

NEVER = (1 << 64) - 1
QUEUES_MAX = 8
_ONE_LINK = "a link's rate and queue need a switch of one thread"


class Switch:
    """Ports, queues and the traffic manager around one pipeline at a time."""

    def __init__(
        self,
        *,
        drop_port: int = 511,
        queues: int = 1,
        threads: int = 1,
        start_ns: int = 0,
        seed: int = 1,
        sanitize: bool = False,
    ) -> None:
        """`queues` of each port: see ss_set_queues. `threads` of the data plane: see ss_set_threads.
        The core is compiled at the first call in a process (cached on disk). `drop_port`: see ss_switch_new."""
        self._core = core_library(sanitize=sanitize)
        self._handle: int = self._core.ss_switch_new(drop_port, start_ns, seed) or 0
        if not self._handle:
            raise ResourceExhaustedError("no memory for a switch")
        if self._core.ss_set_queues(self._handle, queues) != 0:
            raise InvalidArgumentError(f"{queues} queues of a port; 1..{QUEUES_MAX}")
        if self._core.ss_set_threads(self._handle, threads) != 0:
            raise InvalidArgumentError(f"{threads} threads; expected a power of two, 1..{capi.THREADS_MAX}")
        self._queues, self._threads = queues, threads
        self._on_swap: Callable[[Pipeline | None], None] = lambda _pipeline: None
        self._pipeline: Pipeline | None = None
        self._generation = 0
        self._mutex = threading.RLock()
        self._sent: list[tuple[int, bytes]] = []
        self._collector = capi.TX(self._collect)
        self._handed_over: list[tuple[int, int, bytes]] = []
        self._receiver = capi.HANDOVER(self._hand_over)
        self._now_ns = start_ns
        self._logger: object = None

    @property
    def handle(self) -> int:
        """The `struct ss_switch *`, for an I/O engine."""
        return self._handle

    @property
    def threads(self) -> int:
        """Threads of the data plane."""
        return self._threads

    def shard(self, thread: int) -> int:
        """The `struct ss_switch *` of one thread; see ss_switch_shard."""
        return int(self._core.ss_switch_shard(self._handle, thread))

    def on_swap(self, call: Callable[[Pipeline | None], None]) -> None:
        """Has `call` called after each swap, and now."""
        with self._mutex:
            self._on_swap = call
            call(self._pipeline)

    @property
    def pipeline(self) -> Pipeline | None:
        return self._pipeline

    def swap(self, pipeline: Pipeline | None) -> Pipeline | None:
        """Makes `pipeline` the running one, between two batches, and returns the old one (not closed).
        Frames waiting in queues are dropped and counted: their parsed form belongs to the old program."""
        with self._mutex:
            if pipeline is not None and (pipeline.attached or not pipeline.handle):
                raise InvalidArgumentError("the pipeline is closed, or in a switch already")
            if pipeline is not None and pipeline.threads != self._threads:
                raise InvalidArgumentError(
                    f"the pipeline is for {pipeline.threads} threads; the switch has {self._threads}"
                )
            old = self._pipeline
            self._core.ss_swap(self._handle, pipeline.handle if pipeline is not None else None)
            if pipeline is not None:
                pipeline.attached = True
            if old is not None:
                old.attached = False
            self._pipeline = pipeline
            self._generation = self._core.ss_generation(self._handle)
            self._on_swap(pipeline)
            return old

    def port_config(self, port: int, rate_bps: int, queue_packets: int) -> None:
        """See ss_port_config."""
        if not (0 <= port <= 65535 and 0 <= rate_bps < 1 << 63 and 0 <= queue_packets <= 65536):
            raise InvalidArgumentError(
                f"port {port} (0..65535), rate {rate_bps} bit/s, queue {queue_packets} (0..65536)"
            )
        if rate_bps and self._threads > 1:
            raise InvalidArgumentError(f"port {port}: {_ONE_LINK}")
        if self._core.ss_port_config(self._handle, port, rate_bps, queue_packets) != 0:
            raise InvalidArgumentError(
                f"port {port}: a rate needs a queue of 1..65536 packets, not {queue_packets}"
            )

    @property
    def queues(self) -> int:
        """Queues of each port."""
        return self._queues

    def queue_config(
        self, port: int, queue: int, *, rate_pps: int | None = None, packets: int | None = None
    ) -> None:
        """See ss_queue_config; None keeps what is."""
        if not (0 <= port <= capi.PORT_MAX and 0 <= queue < self._queues):
            raise InvalidArgumentError(
                f"port {port} (0..{capi.PORT_MAX}), queue {queue} (0..{self._queues - 1})"
            )
        if not (0 <= (rate_pps or 0) < 1 << 63 and 0 <= (packets or 0) <= 65536):
            raise InvalidArgumentError(
                f"port {port}: rate {rate_pps} packets/s, queue {packets} packets (0..65536)"
            )
        if self._threads > 1:
            raise InvalidArgumentError(f"port {port}: {_ONE_LINK}")
        keep = NEVER
        values = (keep if rate_pps is None else rate_pps, keep if packets is None else packets)
        if self._core.ss_queue_config(self._handle, port, queue, *values) != 0:
            raise ResourceExhaustedError("no memory for a port")

    def port_set_up(self, port: int, up: bool) -> None:
        """See ss_port_set_up."""
        if not 0 <= port <= capi.PORT_MAX or self._core.ss_port_set_up(self._handle, port, int(up)) != 0:
            raise InvalidArgumentError(f"port {port} is not in 0..{capi.PORT_MAX}")

    def port_stats(self, port: int) -> Mapping[str, int]:
        """The fields of struct ss_port_stats."""
        stats = capi.PortStats()
        if (
            not 0 <= port <= 65535
            or self._core.ss_port_stats_get(self._handle, port, ctypes.byref(stats)) != 0
        ):
            raise InvalidArgumentError(f"port {port} is not in 0..65535")
        return {str(f[0]): int(getattr(stats, f[0])) for f in stats._fields_}

    def stats(self) -> Mapping[str, int]:
        """The fields of struct ss_stats."""
        stats = capi.Stats()
        self._core.ss_stats_get(self._handle, ctypes.byref(stats))
        return {str(f[0]): int(getattr(stats, f[0])) for f in stats._fields_}

    def log_to(self, sink: Callable[[str, str], None] | None) -> None:
        """Sets the receiver of log_msg() (level "I") and of the trace ("D", "T", "E"). It is called inside a batch:
        it must return quickly."""
        if sink is None:
            self._logger = None
            self._core.ss_set_log(self._handle, capi.LOG(), None)
            return
        callback = capi.LOG(lambda _ctx, level, text: sink(level.decode(), text.decode(errors="replace")))
        self._core.ss_set_log(self._handle, callback, None)
        self._logger = callback

    def dump_packets(self, count: int) -> None:
        """Logs the first `count` bytes of each received and sent frame (level "I"); see ss_set_dump."""
        self._core.ss_set_dump(self._handle, min(max(count, 0), capi.FRAME_MAX))

    # ---- events ----

    def event_fd(self) -> int:
        """Readable when events() has something; see ss_event_fd."""
        return int(self._core.ss_event_fd(self._handle))

    def events(self, limit: int = 1024) -> list[Event]:
        """Takes up to `limit` waiting events, oldest first. Those of a pipeline that was swapped out are dropped."""
        out: list[Event] = []
        raw, data = capi.EventC(), ctypes.create_string_buffer(capi.DIGEST_MAX)
        while len(out) < limit:
            count = self._core.ss_event_take(self._handle, ctypes.byref(raw), data)
            if count < 0:
                break
            event = self._event(raw, data.raw[:count])
            if event is not None:
                out.append(event)
        return out

    def _event(self, raw: capi.EventC, data: bytes) -> Event | None:
        if self._pipeline is None or raw.generation != self._generation:
            return None
        if raw.kind == 1:
            digest = self._pipeline.digest_by_list(raw.object)
            return None if digest is None else DigestEvent(digest[0], _fields(data, digest[1]), raw.time_ns)
        found = self._pipeline.entry_by_handle(raw.object, raw.handle)
        return None if found is None else IdleEvent(found[0], found[1], raw.time_ns)

    # ---- for tests ----

    def _collect(self, _ctx: object, port: int, data: object, length: int) -> None:
        self._sent.append((port, ctypes.string_at(data, length)))  # type: ignore[arg-type]

    def _hand_over(self, _ctx: object, thread: int, port: int, data: object, length: int) -> None:
        self._handed_over.append((thread, port, ctypes.string_at(data, length)))  # type: ignore[arg-type]

    def _taking(self, thread: int, work: Callable[[int], int]) -> tuple[list[tuple[int, bytes]], int]:
        """`work` in a batch of a thread's shard; then frames that it hands over, in those of their threads."""
        with self._mutex:
            self._sent, self._handed_over = [], []
            result = self._batch(thread, work)
            for owner, port, frame in self._handed_over:
                self._batch(owner, self._receive, port, frame, self._now_ns)
            return self._sent, result

    def _batch(self, thread: int, work: Callable[..., int], *arguments: object) -> int:
        shard = self.shard(thread)
        self._core.ss_set_tx(shard, self._collector, None)
        self._core.ss_set_handover(shard, self._receiver, None)
        self._core.ss_begin(shard)
        try:
            return work(shard, *arguments)
        finally:
            self._core.ss_end(shard)

    def _receive(self, shard: int, port: int, frame: bytes, now_ns: int) -> int:
        self._core.ss_receive(shard, port, frame, len(frame), now_ns)
        return 0

    def inject(self, port: int, frame: bytes, now_ns: int, thread: int = 0) -> list[tuple[int, bytes]]:
        """For tests: runs one frame, received by a thread, and returns what left at once, in order. Not while an engine
        drives the switch."""
        self._now_ns = now_ns
        return self._taking(thread, lambda shard: self._receive(shard, port, frame, now_ns))[0]

    def service(self, now_ns: int) -> tuple[list[tuple[int, bytes]], int | None]:
        """For tests: what ss_service released, and the next deadline."""
        sent, deadline = self._taking(0, lambda shard: int(self._core.ss_service(shard, now_ns)))
        return sent, None if deadline == NEVER else deadline

    def close(self) -> None:
        """Frees the switch; the pipeline stays with its owner. Idempotent."""
        with self._mutex:
            if self._handle:
                self.swap(None)
                self._core.ss_switch_free(self._handle)
                self._handle = 0


def _fields(data: bytes, widths: list[int]) -> tuple[bytes, ...]:
    out, at = [], 0
    for width in widths:
        size = (width + 7) // 8
        out.append(values.encode(int.from_bytes(data[at : at + size], "big")))
        at += size
    return tuple(out)
