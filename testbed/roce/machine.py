# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One virtual machine in the place of a Mininet host, and a shell in it."""

from __future__ import annotations

import contextlib
import itertools
import socket
import subprocess
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from netfold.testbed.errors import ProcessFailed, RunError, RunTimeout
from netfold.testbed.roce.image import Image
from netfold.testbed.roce.packages import QEMU
from netfold.topologies.network.builder import Network

T = TypeVar("T")

MEMORY_MB = 224
BOOT_S = 300.0
"""Four machines on two idle cores take 30 s without hardware virtualization, on busy ones several times that."""

_OFF = ",".join(
    f"{o}=off"
    for o in (
        "csum", "gso", "guest_csum", "guest_tso4", "guest_tso6", "guest_ufo", "host_tso4", "host_tso6", "host_ufo",
    )
)  # fmt: skip
TAP = "tap0"

# The host's namespace becomes a wire between the machine's port and the leaf: a bridge with these two ports alone. The
# machine has the host's addresses, so the leaf's end must not answer to them.
_WIRE = f"""
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


@dataclass(frozen=True)
class Answer:
    """What a command in the machine gave."""

    code: int
    output: str


class Machine:
    """A machine that boots at `host`'s place. Raises RunError, here and later."""

    def __init__(self, net: Network, host: str, image: Image) -> None:
        self.host = host
        self.address = net.addressing.hosts[host].ip
        self._log = net.work / f"{host}.console"
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Answer]] = {}
        self._ready: Future[None] = Future()
        self._lock = threading.Lock()
        self._sockets: dict[str, socket.socket] = {}
        paths = {use: net.work / f"{host}.{use}" for use in ("shell", "agent")}
        self.agent_socket = paths["agent"]
        mtu = net.blueprint.mtu
        wire = net.hosts[host].run(["sh", "-ec", _WIRE.format(mac=_other_mac(host), mtu=mtu)], 30.0)
        if wire.returncode != 0:
            raise RunError(f"cannot put a machine in the place of {host}: {wire.stderr.strip()}")
        address = net.addressing.hosts[host]
        told = {
            "address": address.ip,
            "gateway": address.gateway_ip,
            "gateway_mac": address.gateway_mac,
            "mtu": mtu,
        }
        words = " ".join(f"netfold.{k}={v}" for k, v in told.items())
        # no_timer_check: on a busy machine the kernel finds its timer too slow, and panics
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
        """Until the machine takes commands."""
        self._wait(self._ready, deadline - time.monotonic(), "boot")

    def start(self, command: str) -> Future[Answer]:
        """Run a shell command; the answer comes when it has ended."""
        self.check()
        number = next(self._numbers)
        answer: Future[Answer] = Future()
        with self._lock:
            self._waiting[number] = answer
            self._sockets["shell"].sendall(f"{number} {command}\n".encode())
        return answer

    def run(self, command: str, timeout_s: float) -> str:
        """The output of a command that ends well. Raises RunError, RunTimeout."""
        return self.result(self.start(command), timeout_s, command)

    def result(self, answer: Future[Answer], timeout_s: float, command: str) -> str:
        """Waits for a command that was started. Raises RunError, RunTimeout."""
        given = self._wait(answer, timeout_s, f"end '{command[:60]}'")
        if given.code != 0:
            lines = given.output.strip().splitlines() or ["no word"]
            raise RunError(f"on {self.host} '{command[:60]}' ended with {given.code}: {lines[-1]}")
        return given.output

    def check(self) -> None:
        """Raises ProcessFailed if the machine is gone."""
        code = self._process.poll()
        if code is not None:
            files = (self._errors, self._log)  # QEMU's own word, or else the kernel's
            said = [x for f in files for x in f.read_text(errors="replace").splitlines() if x.strip()]
            raise ProcessFailed(f"the machine of {self.host}", code, (said or ["no word"])[0])

    def close(self) -> None:
        """End it as a power cut would."""
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
                    raise RunTimeout(f"{self.host} did not {what} within {timeout_s:.0f} s") from None

    def _read(self, path: Path) -> None:
        """The shell's answers, until the machine ends."""
        with contextlib.suppress(OSError, ValueError):  # cut off in a line, too; `check` tells of that
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
                        waiting.set_result(Answer(code, output))

    def _connected(self, path: Path) -> socket.socket:
        while True:
            link = socket.socket(socket.AF_UNIX)
            try:
                link.connect(str(path))
            except OSError:
                link.close()
                if self._process.poll() is not None:
                    raise
                time.sleep(0.05)  # QEMU makes the socket while it starts
            else:
                self._sockets["shell"] = link
                return link


def _other_mac(host: str) -> str:
    return "06:" + ":".join(f"{b:02x}" for b in host.encode()[:5].rjust(5, b"\0"))
