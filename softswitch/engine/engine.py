# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine as Python drives it: ports, faults, captures, counters, and the frames of the CPU port."""

from __future__ import annotations

import ctypes
import errno
import os
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path

from netfold.softswitch.engine import abi
from netfold.softswitch.errors import SwitchError
from netfold.softswitch.state.switch import Switch

MAX_FRAME = 65535


class Direction(IntEnum):
    """Of a link, as the switch sees it."""

    IN = 0
    OUT = 1


class EngineError(SwitchError):
    """The engine refused an operation; nothing has changed."""


@dataclass(frozen=True)
class Faults:
    """What one direction of a port's link does to frames. Probabilities 0..1, independent of one another; the fate of
    the n-th frame depends on `seed` and n alone. `delay_ns` is drawn evenly from +- `jitter_ns`. A reordered frame
    comes out behind `reorder_gap` later ones, or after `reorder_hold_ns` when too few come."""

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    delay_ns: int = 0
    jitter_ns: int = 0
    reorder_gap: int = 3
    reorder_hold_ns: int = 1_000_000
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder", "corrupt"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} = {getattr(self, name)}: a probability is in 0..1")
        for name in ("delay_ns", "jitter_ns", "reorder_gap", "reorder_hold_ns", "seed"):
            if (
                not 0 <= getattr(self, name) < 1 << 32
                if name == "reorder_gap"
                else not 0 <= getattr(self, name) < 1 << 63
            ):
                raise ValueError(f"{name} = {getattr(self, name)}: out of range")


@dataclass(frozen=True)
class PortStatus:
    """A port now. `up`: its interface is there and bound; `live`: and is up, with a carrier. Counters are monotonic
    since the port was added."""

    number: int
    ifname: str
    up: bool
    live: bool
    counters: dict[str, int]
    faults: dict[Direction, dict[str, int]]


class Engine:
    """Drives one switch. Needs the right to open packet sockets (CAP_NET_RAW). Any thread may call."""

    def __init__(self, switch: Switch, cpu_port: int, cache_dir: Path) -> None:
        """Builds the engine's C when needed. Raises PipelineError (no compiler), EngineError."""
        self._switch = switch
        self._library = abi.engine_library(cache_dir)
        self._handle: int | None = self._library.engine_new(switch.handle, cpu_port)
        if not self._handle:
            raise EngineError(f"the engine cannot start: {os.strerror(ctypes.get_errno())}")
        self._frame = (ctypes.c_uint8 * MAX_FRAME)()

    def start(self) -> None:
        """Starts the data plane's thread."""
        self._check(self._library.engine_start(self._handle), "the data-plane thread")

    def stop(self) -> None:
        """Forwards what has been received, flushes the captures and ends the thread. Idempotent."""
        if self._handle:
            self._library.engine_stop(self._handle)

    def close(self) -> None:
        """Stops, and lets the interfaces go. Idempotent."""
        if self._handle:
            self._library.engine_free(self._handle)
            self._handle = None

    def add_port(self, number: int, ifname: str) -> None:
        """Binds a port to an interface; while there is no such interface the port is down."""
        reasons = {
            errno.EEXIST: "the number or the interface is in use",
            errno.EINVAL: f"a port number is 0..{MAX_FRAME}, not the CPU port's; an interface has a plain name",
            errno.ENAMETOOLONG: "an interface name has at most 15 characters",
            errno.EPERM: "packet sockets need CAP_NET_RAW (run as root)",
        }
        what = f"port {number} on {ifname}"
        if not 0 <= number <= MAX_FRAME:
            raise EngineError(f"{what}: {reasons[errno.EINVAL]}")
        self._check(self._library.engine_add_port(self._handle, number, os.fsencode(ifname)), what, reasons)

    def remove_port(self, number: int) -> None:
        """Takes a port away; frames for it are counted as `unknown_port`."""
        self._check(self._library.engine_remove_port(self._handle, number), f"port {number}", _NO_PORT)

    def set_faults(self, number: int, direction: Direction, faults: Faults) -> None:
        """From now on the link treats frames so; the random sequence starts anew."""
        settings = abi.FaultSettings(**asdict(faults))
        result = self._library.engine_set_faults(self._handle, number, int(direction), ctypes.byref(settings))
        self._check(result, f"port {number}", _NO_PORT)

    def set_capture(self, folder: Path | None) -> None:
        """Records the frames of every port in `folder`/IFNAME_in.pcap and IFNAME_out.pcap; None ends it."""
        name = None if folder is None else os.fsencode(folder)
        self._check(self._library.engine_set_capture(self._handle, name), f"captures in {folder}")

    def ports(self) -> list[PortStatus]:
        """All ports, ascending by number."""
        room = 64
        while True:
            buffer = (abi.PortStatus * room)()
            count = self._library.engine_ports(self._handle, buffer, room)
            if count <= room:
                return [_port_status(buffer[i]) for i in range(count)]
            room = count

    def stats(self) -> dict[str, int]:
        """The fields of struct engine_stats."""
        stats = abi.EngineStats()
        self._library.engine_stats_get(self._handle, ctypes.byref(stats))
        return _fields(stats)

    def service(self) -> None:
        """Gives the core the time of now, and sets the data plane's timer: before a control operation that asks for
        idle times, and after one that sets an idle timeout or a rate."""
        self._library.engine_service(self._handle)

    def packet_out(self, frame: bytes) -> None:
        """Runs a frame through the pipeline from the CPU port."""
        self._check(self._library.engine_packet_out(self._handle, frame, len(frame)), "packet-out")

    def packet_in_fd(self) -> int:
        """Readable when `packet_in` has something; belongs to the engine."""
        return int(self._library.engine_packet_in_fd(self._handle))

    def packet_in(self) -> bytes | None:
        """The oldest frame that waits at the CPU port, if any."""
        length = self._library.engine_packet_in(self._handle, self._frame, MAX_FRAME)
        return None if length < 0 else ctypes.string_at(self._frame, length)

    def _check(self, result: int, what: str, reasons: dict[int, str] | None = None) -> None:
        if result < 0:
            reason = (reasons or {}).get(-result, os.strerror(-result))
            raise EngineError(f"{what}: {reason}")


_NO_PORT = {errno.ENOENT: "there is no such port"}


def _fields(structure: ctypes.Structure) -> dict[str, int]:
    return {name: int(getattr(structure, name)) for name, *_ in structure._fields_}


def _port_status(status: abi.PortStatus) -> PortStatus:
    return PortStatus(
        number=status.number,
        ifname=os.fsdecode(status.ifname),
        up=bool(status.up),
        live=bool(status.live),
        counters=_fields(status.counters),
        faults={direction: _fields(status.faults[direction]) for direction in Direction},
    )
