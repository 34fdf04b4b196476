# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The engine's Python interface: ports, faults, captures, counters, frames of the CPU port."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import logging
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from enum import IntEnum
from pathlib import Path

from softswitch.engine import abi, xdp
from softswitch.engine.dpdk import device as dpdk
from softswitch.engine.dpdk import eal
from softswitch.engine.steering_program import steering_program
from softswitch.errors import SwitchError
from softswitch.state.pipeline import Pipeline
from softswitch.state.switch import Switch

log = logging.getLogger(__name__)

MAX_FRAME = 65535
XDP_MTU_MAX = 3818
SEED_STEP = 0x9E3779B97F4A7C15
"""Between the seeds of a port's threads."""

RUN_RINGS_BYTES = 512 << 20
"""Memory of the receive rings of all ports and threads, where their frames hold runs."""
RUN_RING_LIMITS = 2 << 20, 32 << 20
"""Bytes of one of these rings: those of a ring without runs at least, those of 1,024 frames at most."""


class Direction(IntEnum):
    """Direction of a link, as the switch sees it."""

    IN = 0
    OUT = 1


class EngineError(SwitchError):
    """The engine rejected an operation; nothing changed."""


@dataclass(frozen=True)
class Faults:
    """Faults of one direction of a port's link. Probabilities 0..1, independent of one another; the fate of the n-th
    frame depends on `seed` and n alone. The delay is uniform in `delay_ns` +- `jitter_ns`. A reordered frame is
    released after `reorder_gap` later frames, or after `reorder_hold_ns`."""

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
                raise ValueError(f"{name} = {getattr(self, name)}: expected a probability, 0..1")
        for name in ("delay_ns", "jitter_ns", "reorder_gap", "reorder_hold_ns", "seed"):
            if (
                not 0 <= getattr(self, name) < 1 << 32
                if name == "reorder_gap"
                else not 0 <= getattr(self, name) < 1 << 63
            ):
                raise ValueError(f"{name} = {getattr(self, name)}: out of range")


@dataclass(frozen=True)
class PortStatus:
    """State of a port. `up`: its interface is present and bound; `oper_up`: and is up, with a carrier; `error`: why it
    is not bound, or empty; `merges`: runs of frames leave as one; `zero_copy`: the driver of an AF_XDP port has its
    frames where they lie. Counters start when the port is added; `faults` are those of the frames, `fault_settings`
    what is set."""

    number: int
    ifname: str
    up: bool
    oper_up: bool
    counters: dict[str, int]
    faults: dict[Direction, dict[str, int]]
    fault_settings: dict[Direction, Faults]
    merges: bool = False
    zero_copy: bool = False
    kind: str = "packet"
    error: str = ""


class Engine:
    """Drives one switch. Needs the right to open packet sockets (CAP_NET_RAW). Any thread may call."""

    def __init__(self, switch: Switch, cpu_port: int, cache_dir: Path) -> None:
        """Builds the engine's C when needed. Raises PipelineError (no compiler), EngineError."""
        self._switch = switch
        self._library = abi.engine_library(cache_dir)
        self._handles: list[int] = []
        self._threads = range(switch.threads)
        try:
            for thread in self._threads:
                handle = self._library.ss_engine_new(switch.shard(thread), cpu_port)
                if not handle:
                    raise EngineError(f"the engine cannot start: {os.strerror(ctypes.get_errno())}")
                self._handles.append(handle)
            group = (ctypes.c_void_p * len(self._handles))(*self._handles)
            self._check(self._library.ss_engine_join(group, len(self._handles)), "the engine's threads")
        except EngineError:
            self.close()
            raise
        self._frame = (ctypes.c_uint8 * MAX_FRAME)()
        self._cache_dir = cache_dir
        self._xdp: dict[int, xdp.XdpProgram] = {}
        self._devices: dict[int, bytes] = {}  # the engine has their addresses
        self._errors: dict[int, str] = {}
        switch.on_swap(self._steer)

    def start(self) -> None:
        """Starts the data plane's threads."""
        for handle in self._handles:
            self._check(self._library.ss_engine_start(handle), "the data-plane thread")

    def stop(self) -> None:
        """Forwards the received frames, flushes the captures and ends the threads. Idempotent."""
        for handle in self._handles:
            self._library.ss_engine_stop(handle)

    def close(self) -> None:
        """Stops and releases the interfaces. Idempotent."""
        self.stop()
        for handle in reversed(self._handles):
            self._library.ss_engine_free(handle)
        self._handles = []
        for number in list(self._xdp):
            self._xdp.pop(number).close()

    @property
    def _first(self) -> int | None:
        """The thread of the control plane's frames and events."""
        return self._handles[0] if self._handles else None

    def _steer(self, pipeline: Pipeline | None) -> None:
        if len(self._handles) < 2:
            return
        steps = steering_program(pipeline.steering if pipeline else None, len(self._handles))
        program = (abi.SockFilter * len(steps))(*(abi.SockFilter(s.code, s.jt, s.jf, s.k) for s in steps))
        result = self._library.ss_engine_set_steering(self._first, program, len(steps))
        if result < 0:  # every frame arrives at the first thread, which hands it over
            log.warning("frames are not dealt to the threads by the kernel: %s", os.strerror(-result))

    def _add(self, add: Callable[[int], int], number: int) -> int:
        """Adds a port at all threads, or at none."""
        for thread, handle in enumerate(self._handles):
            result = add(handle)
            if result < 0:
                for added in self._handles[:thread]:
                    self._library.ss_engine_remove_port(added, number)
                return result
        return 0

    def add_port(self, number: int, interface: str, program: xdp.XdpProgram | None = None) -> None:
        """Binds a port to an interface, `xdp:IFACE` by AF_XDP, or to a device of DPDK, `dpdk:DEVICE`; the port is down
        while that is absent. `program`: of an AF_XDP port, the caller's; otherwise it is loaded here. Raises
        EngineError, XdpError, DpdkError."""
        ifname = dpdk.name_of(interface)
        reasons = {
            errno.EEXIST: "the number or the interface is in use",
            errno.EINVAL: f"a port number is 0..{MAX_FRAME}, not the CPU port's; an interface has a plain name",
            errno.ENAMETOOLONG: "an interface name has at most 15 characters",
            errno.EPERM: "packet sockets need CAP_NET_RAW (run as root)",
        }
        what = f"port {number} on {ifname}"
        if not 0 <= number <= MAX_FRAME:
            raise EngineError(f"{what}: {reasons[errno.EINVAL]}")
        name = os.fsencode(ifname)
        if dpdk.is_dpdk(interface):
            added, reasons = self._add_device(number, dpdk.parse(interface)), {**reasons, **_DPDK_REASONS}
        elif xdp.is_xdp(interface):
            added, reasons = self._add_xdp(number, name, what, program), {**reasons, **_XDP_REASONS}
        else:
            added = self._add(lambda h: int(self._library.ss_engine_add_port(h, number, name)), number)
        self._check(added, what, reasons)

    def _add_xdp(self, number: int, name: bytes, what: str, program: xdp.XdpProgram | None) -> int:
        used = program or xdp.load(self._cache_dir, len(self._handles), what)
        descriptors = used.program, used.sockets
        added = self._add(
            lambda h: int(self._library.ss_engine_add_xdp(h, number, name, *descriptors)), number
        )
        if program is None and added < 0:
            used.close()
        elif program is None:
            self._xdp[number] = used
        return added

    def _add_device(self, number: int, device: dpdk.DpdkDevice) -> int:
        eal.start(self._cache_dir, [device])
        kind, name, arguments = (
            eal.port_kind(self._cache_dir),
            device.name.encode(),
            device.arguments.encode(),
        )
        added = self._add(
            lambda h: int(self._library.ss_engine_add_device(h, number, name, kind, arguments, device.mtu)),
            number,
        )
        if added == 0:
            self._devices[number] = arguments
        return added

    def add_socket(self, number: int, descriptor: int) -> None:
        """Adds a port, `socketN`, on a Unix datagram socket, one frame a datagram; the descriptor stays the
        caller's."""
        reasons = {
            errno.EEXIST: "the number is in use",
            errno.EINVAL: f"a port number is 0..{MAX_FRAME}, not the CPU port's",
            **dict.fromkeys(
                (errno.EBADF, errno.ENOTSOCK, errno.EPROTOTYPE), "expected a Unix datagram socket"
            ),
        }
        name = f"socket{number}".encode()
        added = self._add(
            lambda handle: int(self._library.ss_engine_add_socket(handle, number, name, descriptor)), number
        )
        self._check(added, f"port {number} on descriptor {descriptor}", reasons)

    def remove_port(self, number: int) -> None:
        """Removes a port; frames to it are counted as `unknown_port`."""
        for handle in self._handles:
            self._check(self._library.ss_engine_remove_port(handle, number), f"port {number}", _NO_PORT)
        if number in self._xdp:
            self._xdp.pop(number).close()
        self._devices.pop(number, None)

    def set_faults(self, number: int, direction: Direction, faults: Faults) -> None:
        """Sets the faults and restarts the random sequence. Each thread has one of its own, by its frames."""
        for thread, handle in enumerate(self._handles):
            seed = (faults.seed + thread * SEED_STEP) % (1 << 63)
            settings = abi.FaultSettings(**asdict(replace(faults, seed=seed)))
            result = self._library.ss_engine_set_faults(
                handle, number, int(direction), ctypes.byref(settings)
            )
            self._check(result, f"port {number}", _NO_PORT)

    def set_gso(self, on: bool, ports: int) -> None:
        """Sets whether runs of frames leave as one, where the device segments them (`PortStatus.merges`). Each of the
        `ports` that will be added has an equal part of RUN_RINGS_BYTES in each thread, within RUN_RING_LIMITS; further
        ones have what is left."""
        part = RUN_RINGS_BYTES // max(1, ports * len(self._handles))
        smallest, largest = RUN_RING_LIMITS
        ring_bytes = min(max(1 << part.bit_length() - 1, smallest), largest)
        for handle in self._handles:
            self._library.ss_engine_set_gso(
                handle, int(on), ring_bytes, RUN_RINGS_BYTES // len(self._handles)
            )

    def set_capture(self, folder: Path | None) -> None:
        """Captures every port to `folder`/IFNAME_in.pcap and IFNAME_out.pcap, further threads to IFNAME_in.1.pcap
        and so on; None ends it."""
        name = None if folder is None else os.fsencode(folder)
        for handle in self._handles:
            self._check(self._library.ss_engine_set_capture(handle, name), f"captures in {folder}")

    def ports(self) -> list[PortStatus]:
        """All ports, ascending by number."""
        by_thread = [{port.number: port for port in self._ports(handle)} for handle in self._handles]
        others = by_thread[1:]
        return [
            functools.reduce(_together, (t[port.number] for t in others if port.number in t), port)
            for port in (by_thread[0].values() if by_thread else ())
        ]

    def _ports(self, handle: int) -> list[PortStatus]:
        capacity = 64
        while True:
            buffer = (abi.PortStatus * capacity)()
            count = self._library.ss_engine_ports(handle, buffer, capacity)
            if count <= capacity:
                return [_port_status(buffer[i]) for i in range(count)]
            capacity = count

    def port_change_fd(self) -> int:
        """Readable once a port's `error` has changed; owned by the engine."""
        return int(self._library.ss_engine_port_change_fd(self._first))

    def changed_ports(self) -> list[PortStatus]:
        """The ports whose `error` is another one than at the last call, or at first than none."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.port_change_fd())
        ports = self.ports()
        changed = [port for port in ports if port.error != self._errors.get(port.number, "")]
        self._errors = {port.number: port.error for port in ports}
        return changed

    def stats(self) -> dict[str, int]:
        """The fields of struct ss_engine_stats, of all threads together."""
        total: dict[str, int] = {}
        for handle in self._handles:
            stats = abi.EngineStats()
            self._library.ss_engine_stats_get(handle, ctypes.byref(stats))
            total = _sum(total, _fields(stats))
        return total

    def service(self) -> None:
        """Updates the core's clock and the data plane's timer: call it before a control operation that reads idle
        times, and after one that sets an idle timeout or a rate."""
        self._library.ss_engine_service(self._first)

    def packet_out(self, frame: bytes) -> None:
        """Runs a frame through the pipeline from the CPU port."""
        self._check(self._library.ss_engine_packet_out(self._first, frame, len(frame)), "packet-out")

    def packet_in_fd(self) -> int:
        """Readable while packet-ins are queued; owned by the engine."""
        return int(self._library.ss_engine_packet_in_fd(self._first))

    def packet_in(self) -> bytes | None:
        """The oldest queued packet-in, if any."""
        length = self._library.ss_engine_packet_in(self._first, self._frame, MAX_FRAME)
        return None if length < 0 else ctypes.string_at(self._frame, length)

    def _check(self, result: int, what: str, reasons: dict[int, str] | None = None) -> None:
        if result < 0:
            reason = (reasons or {}).get(-result, os.strerror(-result))
            raise EngineError(f"{what}: {reason}")


_NO_PORT = {errno.ENOENT: "there is no such port"}
_XDP_REASONS = {
    errno.EMSGSIZE: f"AF_XDP carries an MTU of up to {XDP_MTU_MAX}",
    errno.ERANGE: f"AF_XDP carries an MTU of up to {XDP_MTU_MAX}, and the driver less",
    errno.EUSERS: "expected one receive queue of the interface for each of --threads, and as many to send (ethtool -L)",
    errno.ENOBUFS: "no more memory may be locked, of which a thread needs up to 5 MB here (ulimit -l)",
    errno.EBUSY: "the interface's XDP hook or queue is in use (ip link show)",
}

_DPDK_REASONS = {
    errno.EBUSY: "other threads have the device open still",
    errno.EIO: "DPDK's driver refuses the device; standard error has its reason",
    errno.EMSGSIZE: f"the device carries a smaller MTU, at most {dpdk.MTU_MAX}",
    errno.EUSERS: "expected a queue of the device in each direction for each of --threads",
    errno.ENOMEM: "expected 8 MB of free huge pages for each thread of --threads, or more with a larger MTU",
}
_REASONS = {"xdp": _XDP_REASONS, "dpdk": {errno.ENODEV: "the device is absent", **_DPDK_REASONS}}


def _fields(structure: ctypes.Structure) -> dict[str, int]:
    return {name: int(getattr(structure, name)) for name, *_ in structure._fields_}


def _faults(settings: abi.FaultSettings) -> Faults:
    return Faults(**{name: getattr(settings, name) for name, *_ in settings._fields_})


def _sum(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {name: a.get(name, 0) + value for name, value in b.items()}


def _together(a: PortStatus, b: PortStatus) -> PortStatus:
    """A port of two threads: it is up where both have opened it, and has counted what both did."""
    faults = {d: _sum(a.faults[d], b.faults[d]) for d in Direction}
    return replace(
        a,
        up=a.up and b.up,
        oper_up=a.oper_up and b.oper_up,
        counters=_sum(a.counters, b.counters),
        faults=faults,
        error=a.error or b.error,
    )


def _open_error(number: int, kind: str) -> str:
    reasons = {0: "", errno.ENODEV: "the interface is absent", **_REASONS.get(kind, {})}
    return reasons.get(number, os.strerror(number))


def _port_status(status: abi.PortStatus) -> PortStatus:
    return PortStatus(
        number=status.number,
        ifname=os.fsdecode(status.ifname),
        up=bool(status.up),
        oper_up=bool(status.oper_up),
        merges=bool(status.merges),
        zero_copy=bool(status.zero_copy),
        kind=status.kind.decode(),
        error=_open_error(status.error, status.kind.decode()),
        counters=_fields(status.counters),
        faults={direction: _fields(status.faults[direction]) for direction in Direction},
        fault_settings={d: _faults(status.fault_settings[d]) for d in Direction},
    )
