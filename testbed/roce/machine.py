# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A virtual machine in place of a Mininet host, a shell in it, and its clock compared with the host's. A guest kernel
that calibrates its clock on a busy host can be wrong by any factor; its timeouts then end too early or too late."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from netfold.testbed.errors import ProcessFailedError, RunError, RunTimeoutError
from netfold.testbed.network.network import Network
from netfold.testbed.roce.image import Image
from netfold.testbed.roce.packages import QEMU

T = TypeVar("T")

MEMORY_MB = 224
BOOT_S = 300.0
"""Four machines on two idle cores boot in 30 s without hardware virtualization; busy cores take several times as
long."""

UPTIME_TIMEOUT_S = 30.0

_OFF = ",".join(
    f"{o}=off"
    for o in (
        "csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ufo", "host_tso4", "host_tso6", "host_ufo",
    )
)  # fmt: skip
TAP = "tap0"

# A bridge in the host's namespace connects the machine's tap to the leaf. The machine has the host's addresses, so eth0
# must not answer to them.
_BRIDGE = f"""
ip link set dev eth0 down
ip addr flush dev eth0
ip link set dev eth0 address {{mac}}
ip tuntap add {TAP} mode tap
ip link set dev {TAP} mtu {{mtu}} up
ip link add br0 type bridge
ip link set dev br0 type bridge mcast_snooping 0 2>/dev/null || true
ip link set dev br0 mtu {{mtu}} up
ip link set dev eth0 master br0
ip link set dev {TAP} master br0
ip link set dev eth0 up
"""

INTERVAL_S = 2.0
"""Between two readings of a clock, on the host."""

TOLERANCE = 0.05

RESOLUTION_S = 0.02
"""Resolution of the difference of two readings of /proc/uptime."""


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command in the machine."""

    code: int
    output: str


def bridge(net: Network, host: str) -> None:
    """Connects the tap of a machine, which a later Machine opens, to the host's leaf. Raises RunError."""
    script = _BRIDGE.format(mac=_other_mac(host), mtu=net.blueprint.mtu)
    bridged = net.hosts[host].run(["sh", "-ec", script], 30.0)
    if bridged.returncode != 0:
        raise RunError(f"cannot replace {host} by a machine: {bridged.stderr.strip()}")


class Machine:
    """A machine that boots in place of `host`, after `bridge`. Methods raise RunError."""

    def __init__(self, net: Network, host: str, image: Image) -> None:
        self.host = host
        self.address = net.addressing.hosts[host].ip
        self._log = net.work / f"{host}.console"
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[CommandResult]] = {}
        self._ready: Future[None] = Future()
        self._lock = threading.Lock()
        self._sockets: dict[str, socket.socket] = {}
        paths = {use: net.work / f"{host}.{use}" for use in ("shell", "agent")}
        self.agent_socket = paths["agent"]
        address = net.addressing.hosts[host]
        kernel_options = {
            "address": address.ip,
            "gateway": address.gateway_ip,
            "gateway_mac": address.gateway_mac,
            "mtu": net.blueprint.mtu,
        }
        words = " ".join(f"netfold.{k}={v}" for k, v in kernel_options.items())
        # no_timer_check: on a busy machine the kernel's timer check would panic
        command = [
            QEMU, "-name", host, "-M", "q35", "-accel", "tcg,thread=multi,tb-size=64", "-cpu", "max",
            "-m", MEMORY_MB, "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{self._log}",
            "-kernel", image.kernel, "-initrd", image.archive,
            "-append", f"console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable no_timer_check {words}",
            "-netdev", f"tap,id=n0,ifname={TAP},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=n0,mac={address.mac},{_OFF}",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=shell,path={paths['shell']},server=on,wait=off",
            "-device", "virtserialport,chardev=shell,nr=1",
            "-chardev", f"socket,id=agent,path={paths['agent']},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,nr=2",
        ]  # fmt: skip
        self._errors = net.work / f"{host}.qemu"
        with self._errors.open("w") as errors:
            self._process = net.hosts[host].popen(
                command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors
            )
        self._reader = threading.Thread(target=self._read, args=(paths["shell"],), daemon=True)
        self._reader.start()

    def wait_ready(self, deadline: float) -> None:
        """Wait until the machine accepts commands."""
        self._wait(self._ready, deadline - time.monotonic(), "boot")

    def uptime_s(self) -> float:
        """Seconds since the boot, by the machine's clock."""
        return float(self.run("cat /proc/uptime", UPTIME_TIMEOUT_S).split()[0])

    def start(self, command: str) -> Future[CommandResult]:
        """Start a shell command; the future has its result."""
        self.check()
        number = next(self._numbers)
        answer: Future[CommandResult] = Future()
        with self._lock:
            self._waiting[number] = answer
            self._sockets["shell"].sendall(f"{number} {command}\n".encode())
        return answer

    def run(self, command: str, timeout_s: float) -> str:
        """Run a command; its output. Raises RunError, RunTimeoutError."""
        return self.result(self.start(command), timeout_s, command)

    def result(self, answer: Future[CommandResult], timeout_s: float, command: str) -> str:
        """Wait for a started command. Raises RunError, RunTimeoutError."""
        result = self._wait(answer, timeout_s, f"end '{command[:60]}'")
        if result.code != 0:
            lines = result.output.strip().splitlines() or ["no output"]
            raise RunError(f"{self.host}: '{command[:60]}' ended with exit code {result.code}: {lines[-1]}")
        return result.output

    def check(self) -> None:
        """Raises ProcessFailedError if the machine has ended."""
        code = self._process.poll()
        if code is not None:
            files = (self._errors, self._log)  # QEMU's message, otherwise the kernel's
            messages = [x for f in files for x in f.read_text(errors="replace").splitlines() if x.strip()]
            raise ProcessFailedError(f"the machine of {self.host}", code, (messages or ["no output"])[0])

    def close(self) -> None:
        """Kill it, like a power failure."""
        self._process.kill()
        self._process.wait()
        for open_socket in self._sockets.values():
            open_socket.close()

    def _wait(self, answer: Future[T], timeout_s: float, what: str) -> T:
        until = time.monotonic() + timeout_s
        while True:
            self.check()
            try:
                return answer.result(timeout=min(0.5, max(0.01, until - time.monotonic())))
            except FutureTimeoutError:
                if time.monotonic() > until:
                    raise RunTimeoutError(f"{self.host} did not {what} within {timeout_s:.0f} s") from None

    def _read(self, path: Path) -> None:
        """Reads the shell's results until the machine ends."""
        with contextlib.suppress(OSError, ValueError):  # also truncated lines; `check` reports the end
            shell = self._connected(path)
            with shell.makefile("rb") as lines:
                while line := lines.readline():
                    if line.strip() == b"ready":
                        self._ready.set_result(None)
                        continue
                    number, code, size = map(int, line.split())
                    output = lines.read(size).decode(errors="replace")
                    with self._lock:
                        waiting = self._waiting.pop(number, None)
                    if waiting is not None:
                        waiting.set_result(CommandResult(code, output))

    def _connected(self, path: Path) -> socket.socket:
        while True:
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(str(path))
            except OSError:
                link.close()
                if self._process.poll() is not None:
                    raise
                time.sleep(0.05)  # QEMU creates the socket during its start
            else:
                self._sockets["shell"] = link
                return link


def _other_mac(host: str) -> str:
    return "06:" + ":".join(f"{b:02x}" for b in host.encode()[:5].rjust(5, b"\0"))


class ClockError(RunError):
    """The clock of the machine in place of `host` runs at another rate than the host's."""

    def __init__(self, host: str, guest_s: float, host_s: float) -> None:
        super().__init__(
            f"{host}: the machine's clock counted {guest_s:.1f} s in {host_s:.1f} s; boot it on an idle host"
        )
        self.host = host


class Clocked(Protocol):
    """A machine with a clock."""

    host: str

    def uptime_s(self) -> float:
        """Seconds since the boot, by the machine's clock. Raises RunError."""


@dataclass(frozen=True)
class _Reading:
    """A machine's clock, read at some time between two times of the host's clock."""

    guest_s: float
    after_s: float
    before_s: float


def find_wrong_clocks(
    machines: Iterable[Clocked],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[ClockError]:
    """Reads each clock twice, INTERVAL_S apart. Takes what a busy host delays between them as unknown, not as an error
    of the clock. Raises RunError."""

    def read(machine: Clocked) -> _Reading:
        after = now()
        return _Reading(machine.uptime_s(), after, now())

    first = [(machine, read(machine)) for machine in machines]
    sleep(INTERVAL_S)
    found = []
    for machine, begin in first:
        end = read(machine)
        guest, longest = end.guest_s - begin.guest_s, end.before_s - begin.after_s
        shortest = end.after_s - begin.before_s
        if not shortest * (1 - TOLERANCE) - RESOLUTION_S <= guest <= longest * (1 + TOLERANCE) + RESOLUTION_S:
            found.append(ClockError(machine.host, guest, longest))
    return found
