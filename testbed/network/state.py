# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The run directory of a network: state for other processes, and for the next network's clean-up.

Every process of a network carries its run's id in the environment, which identifies it even after its parent ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from netfold.protocol.environment import Variable
from netfold.protocol.runtime import (
    FolderError,
    check_runtime_folder,
    default_name,
    make_runtime_folder,
    runtime_folder,
)
from netfold.testbed.network.errors import AlreadyUpError, NetworkError, NotUpError, UnknownElementError
from netfold.testbed.network.locks import is_locked, try_lock
from netfold.testbed.network.tools import tool

UNIX = "unix:"
"""Before the path of a P4Runtime server's socket."""
_NAME = re.compile(r"^[a-z]{1,6}$")
_PROC = Path("/proc")
_EXEC_S = 1.0
"""Upper bound of the time of an exec on a busy machine."""


@dataclass(frozen=True)
class HostState:
    pid: int
    ip: str
    mac: str


@dataclass(frozen=True)
class SwitchState:
    name: str
    device_id: int
    grpc_address: str
    control_socket: str
    log: str


@dataclass(frozen=True)
class LinkState:
    """`interface_a`, `port_a`: of end a; None for a host, whose interface is `eth0` in its namespace. `delay_ms`: of
    the link itself."""

    a: str
    b: str
    interface_a: str | None
    interface_b: str
    port_a: int | None = None
    port_b: int = 0
    delay_ms: float = 0.0

    @property
    def root_interface(self) -> str:
        """An interface of the link in the root namespace, which sees both directions."""
        return self.interface_a or self.interface_b

    def directions(self, toward: str | None) -> list[tuple[str, str]]:
        """Sender and receiver of the frames to one end; None: of both. Raises UnknownElementError."""
        if toward not in (None, self.a, self.b):
            raise UnknownElementError(f"end of '{self.a}-{self.b}'", str(toward), [self.a, self.b])
        return [(a, b) for a, b in ((self.a, self.b), (self.b, self.a)) if toward in (None, b)]


@dataclass(frozen=True)
class State:
    """A network that is up, or whose process crashed. `faults`: its switches support fault injection."""

    name: str
    run: str
    owner: int
    fabric: str
    target: str
    faults: bool = False
    ready: bool = False
    hosts: dict[str, HostState] = field(default_factory=dict)
    switches: dict[str, SwitchState] = field(default_factory=dict)
    links: tuple[LinkState, ...] = ()

    @property
    def has_namespaces(self) -> bool:
        """False in `userland`, where switches serve at sockets and links are no interfaces."""
        return not any(s.grpc_address.startswith(UNIX) for s in self.switches.values())

    @property
    def interfaces(self) -> frozenset[str]:
        """The interfaces of its switches, in the root namespace."""
        ends = (end for x in self.links for end in (x.interface_a, x.interface_b))
        return frozenset(end for end in ends if end is not None)

    def host(self, name: str) -> HostState:
        if name not in self.hosts:
            raise UnknownElementError("host", name, list(self.hosts))
        return self.hosts[name]

    def switch(self, name: str) -> SwitchState:
        if name not in self.switches:
            raise UnknownElementError("switch", name, list(self.switches))
        return self.switches[name]

    def link(self, name: str) -> LinkState:
        """The link `A-B`, or `B-A`."""
        for link in self.links:
            if name in (f"{link.a}-{link.b}", f"{link.b}-{link.a}"):
                return link
        raise UnknownElementError("link", name, [f"{x.a}-{x.b}" for x in self.links])


class RunDirectory:
    """The files of the network `name`: state, the owner's lock, sockets, logs, and `work` for other files of its
    lifetime. Raises NetworkError if the runtime folder is not this user's alone."""

    def __init__(self, name: str | None = None) -> None:
        name = default_name() if name is None else name
        if not _NAME.match(name):
            raise NetworkError(f"network name '{name}': expected 1 to 6 lower-case letters")
        try:
            check_runtime_folder()
        except FolderError as error:
            raise NetworkError(str(error)) from error
        self.name = name
        self.path = runtime_folder() / name
        self.logs = self.path / "logs"
        self.work = self.path / "work"
        self._lock: int | None = None

    def socket(self, switch: str) -> Path:
        """The control socket of a switch."""
        return self.path / f"{switch}.sock"

    @property
    def owner_socket(self) -> Path:
        """The socket at which the owner takes requests for its switches."""
        return self.path / "requests.socket"

    def prepare(self) -> None:
        """Create the folders."""
        try:
            make_runtime_folder()
        except FolderError as error:
            raise NetworkError(str(error)) from error
        except OSError as error:
            raise NetworkError(f"cannot make the folder {runtime_folder()}: {error.strerror}") from error
        make_folder(self.logs)

    def acquire(self) -> None:
        """Become the owner. Raises AlreadyUpError if another process is."""
        self.prepare()
        with _write_errors(self.path / "lock") as lock:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        if not try_lock(descriptor):
            os.close(descriptor)
            raise already_up(self)
        self._lock = descriptor

    def release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def owned(self) -> bool:
        """True if a running process owns the network. Does not take the lock."""
        return is_locked(self.path / "lock")

    def write(self, state: State) -> None:
        with _write_errors(self.path / "state.json.new") as temporary:
            temporary.write_text(json.dumps(asdict(state), indent=1))
            temporary.replace(self.path / "state.json")

    def read(self) -> State | None:
        """The last state written; None if it is missing or unreadable."""
        try:
            data = json.loads((self.path / "state.json").read_text())
            data["hosts"] = {n: HostState(**h) for n, h in data["hosts"].items()}
            data["switches"] = {n: SwitchState(**s) for n, s in data["switches"].items()}
            data["links"] = tuple(LinkState(**x) for x in data["links"])
            return State(**data)
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def up(self) -> State:
        """The state of the network, which must be up. Raises NotUpError."""
        state = self.read()
        if state is None or not state.ready or not self.owned:
            raise NotUpError(self.name)
        return state

    def clear(self) -> bool:
        """Remove the remains of a run, in the kernel and here; for the owner only. True if there were any."""
        state = self.read()
        found = state is not None
        if state is not None:
            end_processes(state.run)
        known = state.interfaces if state is not None else frozenset()
        interfaces = (
            interfaces_of(self.name, known) if os.geteuid() == 0 else []
        )  # those of another user's network
        found = found or bool(interfaces)
        delete_interfaces(interfaces)
        self.remove_files()
        return found

    def remove_files(self) -> None:
        """Remove what a run has here, but its logs."""
        for file in (*self.path.glob("*.sock"), self.owner_socket, *self.path.glob("state.json*")):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.work, ignore_errors=True)


def already_up(directory: RunDirectory) -> AlreadyUpError:
    state = directory.read()
    return AlreadyUpError(directory.name, state.fabric if state else "?")


@contextlib.contextmanager
def _write_errors(file: Path) -> Iterator[Path]:
    try:
        yield file
    except OSError as error:
        raise NetworkError(f"{file} cannot be written: {error.strerror}") from error


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NetworkError(f"cannot make the folder {path}: {error.strerror}") from error


def interfaces_of(name: str, known: Collection[str] = ()) -> list[str]:
    """Kernel interfaces of the network `name` in this process's namespace, of which /sys need not be. `known`: those
    that its state names."""
    pattern = re.compile(rf"^{name}[0-9]+-[0-9]+$")
    return [found for _, found in socket.if_nameindex() if found in known or pattern.match(found)]


def delete_interfaces(interfaces: list[str]) -> None:
    """Delete veth links. Ignores errors: deleting one end deletes its peer."""
    if interfaces:
        batch = "".join(f"link del dev {i}\n" for i in interfaces)
        subprocess.run(
            [tool("ip"), "-force", "-batch", "-"],
            input=batch,
            text=True,
            capture_output=True,
            timeout=60,
            check=False,
        )


def processes_of(run: str) -> list[int]:
    """Running processes of a run."""
    mark = f"{Variable.NETWORK}={run}".encode()
    pending = [int(e.name) for e in _PROC.iterdir() if e.name.isdigit() and int(e.name) != os.getpid()]
    found: list[int] = []
    deadline = time.monotonic() + _EXEC_S
    while pending and time.monotonic() < deadline:
        environments = {pid: _environment(pid) for pid in pending}
        found += [pid for pid, e in environments.items() if e is not None and mark in e]
        pending = [pid for pid, e in environments.items() if e is None]
    return found


def _environment(pid: int) -> list[bytes] | None:
    """A process's initial environment; None during an exec. A process with an empty environment looks the same: bound
    the wait."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes()
        if not text:
            Path(f"/proc/{pid}/exe").readlink()  # fails for kernel threads and zombies
            return None
    except OSError:
        return []
    return text.split(b"\0")


def end_processes(run: str, grace_s: float = 3.0) -> None:
    """End all processes of a run: SIGTERM, then SIGKILL after `grace_s`; waits for their end."""
    descriptors = dict(_open_processes(run))
    try:
        _signal_all(descriptors, signal.SIGTERM)
        _signal_all(descriptors, signal.SIGHUP)  # an interactive shell ignores SIGTERM
        _wait_all(descriptors, grace_s)
        _signal_all(descriptors, signal.SIGKILL)
        _wait_all(descriptors, grace_s)
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)
    remaining = processes_of(run)
    for pid in remaining:  # started by the others at their end
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _open_processes(run: str) -> Iterator[tuple[int, int]]:
    for pid in processes_of(run):
        with contextlib.suppress(ProcessLookupError):
            yield pid, os.pidfd_open(pid)


def _signal_all(descriptors: dict[int, int], number: signal.Signals) -> None:
    for descriptor in descriptors.values():
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)


def _wait_all(descriptors: dict[int, int], seconds: float) -> None:
    """Wait until all have ended; closes and removes the descriptors of those that have."""
    poller = select.poll()
    by_descriptor = {d: pid for pid, d in descriptors.items()}
    for descriptor in by_descriptor:
        poller.register(descriptor, select.POLLIN)
    deadline = time.monotonic() + seconds
    while descriptors and (left := deadline - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(left * 1000):
            poller.unregister(descriptor)
            os.close(descriptor)
            del descriptors[by_descriptor[descriptor]]
