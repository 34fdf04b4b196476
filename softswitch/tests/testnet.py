# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A network namespace with veth links, frames in and out of their far ends, and switch processes in it."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import itertools
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from running import PROGRAMS
from softswitch.admin.client import ControlClient
from softswitch.build.native import default_cache_dir
from softswitch.engine import xdp
from softswitch.engine.dpdk import eal
from softswitch.engine.dpdk.device import DpdkError
from softswitch.engine.xdp import XdpError

DEADLINE_S = 120.0
ETH_P_ALL = 3
AF_XDP = 44
PACKET_IGNORE_OUTGOING = 23
_BUFFER_BYTES = 8 << 20
_numbers = itertools.count()

needs_root = [
    pytest.mark.root,
    pytest.mark.skipif(
        os.geteuid() != 0, reason="SKIPPED: needs root for network namespaces and packet sockets"
    ),
]


def ip(*arguments: object) -> None:
    subprocess.run(["ip", *map(str, arguments)], check=True, capture_output=True, timeout=DEADLINE_S)


_FOLDER = Path("/run/netns")
_MAKE_FOLDER = """
if [ -d /run/netns ]; then exec mount -t tmpfs tmpfs /run/netns; fi
before=$(mktemp -d)
mount --rbind /run "$before"
mount -t tmpfs tmpfs /run
for folder in "$before"/*/; do
    here=/run/$(basename "$folder")
    mkdir "$here"
    mount --rbind "$folder" "$here"
done
mkdir /run/netns
"""
"""In a mount namespace of a user's own, /run is still the machine's: names of namespaces get a file system of their own
there, and all else in /run stays."""


def _make_folder() -> None:
    """`ip netns` has a folder that it may write to. Tests in several processes share it."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.access(_FOLDER if _FOLDER.exists() else _FOLDER.parent, os.W_OK):
            subprocess.run(["sh", "-ec", _MAKE_FOLDER], check=True, capture_output=True, timeout=DEADLINE_S)


def raise_receive_buffer(sock: socket.socket) -> None:
    """Raise the buffer as far as the machine allows in a user's own namespaces."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, 33, _BUFFER_BYTES)  # SO_RCVBUFFORCE
    except PermissionError:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)


class Namespace:
    """sw1..swN are the switch's ends of the links, h1..hN the hosts'."""

    def __init__(self, links: int = 2, queues: int = 1) -> None:
        """`queues`: in which each end of a link receives and sends."""
        self._queues = queues
        self._hosts: list[Host] = []
        self.name = f"nf{os.getpid()}-{next(_numbers)}"
        _make_folder()
        ip("netns", "add", self.name)
        try:
            self.run(
                "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"
            )
            for number in range(1, links + 1):
                self.add_link(number)
        except BaseException:
            self.close()
            raise

    def run(self, *command: object) -> str:
        done = subprocess.run(
            ["ip", "netns", "exec", self.name, *map(str, command)],
            check=True,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
        return done.stdout

    def add_link(self, number: int) -> None:
        queues = ("numrxqueues", self._queues, "numtxqueues", self._queues)
        ends = f"sw{number}", f"h{number}"
        ip("-n", self.name, "link", "add", ends[0], *queues, "type", "veth", "peer", "name", ends[1], *queues)
        for end in ("sw", "h"):
            ip("-n", self.name, "link", "set", f"{end}{number}", "up")

    def remove_link(self, number: int) -> None:
        ip("-n", self.name, "link", "del", f"sw{number}")

    def close(self) -> None:
        for host in self._hosts:
            host.close()
        subprocess.run(
            ["ip", "netns", "del", self.name], check=False, capture_output=True, timeout=DEADLINE_S
        )

    @contextmanager
    def entered(self) -> Iterator[None]:
        """The calling thread is inside; sockets that it makes stay there."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.name}") as away:  # noqa: PTH123
            assert libc.setns(away.fileno(), 0) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(home.fileno(), 0) == 0

    def host(self, number: int) -> Host:
        """The far end of a link."""
        return self.end(f"h{number}")

    def end(self, interface: str) -> Host:
        """A socket at an interface. It closes with the namespace at the latest."""
        with self.entered():
            self._hosts.append(Host(interface))
        return self._hosts[-1]


class Host:
    """The far end of a link: sends frames and gets what the switch sends."""

    def __init__(self, ifname: str) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self._socket.setsockopt(263, PACKET_IGNORE_OUTGOING, 1)  # SOL_PACKET
        raise_receive_buffer(self._socket)
        self._socket.bind((ifname, 0))

    def send(self, frame: bytes) -> None:
        self._socket.send(frame)

    def receive(self, timeout: float = DEADLINE_S) -> bytes | None:
        """The next frame; None when none comes in time."""
        ready, _, _ = select.select([self._socket], [], [], timeout)
        return self._socket.recv(65536) if ready else None

    def receive_many(self, count: int) -> list[bytes]:
        """The next `count` frames."""
        frames = []
        for _ in range(count):
            frame = self.receive()
            assert frame is not None, f"only {len(frames)} of {count} frames came"
            frames.append(frame)
        return frames

    def is_silent(self) -> bool:
        """Has nothing come? Ask only after something that is known to come later."""
        return self.receive(0) is None

    def close(self) -> None:
        self._socket.close()


@functools.cache
def xdp_problem() -> str:
    """Why there can be no ports of AF_XDP here; empty if there can."""
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
        xdp.load(default_cache_dir(), 1, "a port").close()
    except (OSError, XdpError) as error:
        return str(error)
    return ""


@functools.cache
def dpdk_problem() -> str:
    """Why there can be no ports of DPDK here; empty if there can."""
    try:
        eal.compiler_flags()
    except DpdkError as error:
        return str(error)
    return ""


needs_dpdk = pytest.mark.skipif(bool(dpdk_problem()), reason=f"SKIPPED: needs libdpdk-dev: {dpdk_problem()}")
packet_only = pytest.mark.parametrize("kind", ["packet"])
"""Marks tests of what AF_XDP and DPDK lack: the kernel's notes on a frame, taps, and frames of any length."""
kernel_only = pytest.mark.parametrize("kind", ["packet", "xdp"], indirect=True)
"""Marks tests of what DPDK lacks: the kernel's runs of frames, and its events."""


def of_kind(kind: str, arguments: Iterable[object], queues: int = 1) -> list[str]:
    """`arguments`, with ports on swN of this kind."""
    replacement = {
        "packet": r"\g<0>",
        "xdp": r"xdp:\g<0>",
        "dpdk": rf"dpdk:net_af_packet\1,iface=\g<0>,qpairs={queues}",
    }
    return [re.sub(r"(?<=@)sw(\d+)", replacement[kind], str(word)) for word in arguments]


def port_name(kind: str, number: int) -> str:
    """The name that the switch has for the port on swN."""
    return f"net_af_packet{number}" if kind == "dpdk" else f"sw{number}"


class SwitchProcess:
    """`softswitch`, in a namespace or here, ready once this is constructed."""

    def __init__(
        self,
        namespace: Namespace | None,
        folder: Path,
        *arguments: object,
        program: str | None = None,
        device_id: int | None = 1,
        python: Sequence[object] = (sys.executable,),
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.address = f"unix:{folder}/grpc.sock"
        self.control_path = folder / "control.sock"
        self.log_path = folder / "switch.log"
        chosen: list[object] = []
        if program is not None:
            chosen = [PROGRAMS / f"{program}.json", "--p4info", PROGRAMS / f"{program}.p4info.txtpb"]
        reader, writer = os.pipe()
        here = () if namespace is None else ("ip", "netns", "exec", namespace.name)
        command = [
            *here,
            *python,
            "-c",
            "from softswitch.cli import main; main()",
            *chosen,
        ]
        command += ["--grpc-server-addr", self.address, "--control-socket", self.control_path]
        command += [] if device_id is None else ["--device-id", device_id]
        command += ["--ready-fd", writer, *arguments]
        with self.log_path.open("w") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command],
                pass_fds=[writer, *pass_fds],
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        os.close(writer)
        try:
            ready, _, _ = select.select([reader], [], [], 60)
            said = os.read(reader, 100) if ready else b""
            assert said.startswith(b"ready "), f"the switch did not start:\n{self.log()}"
            self.grpc_port = int(said.split()[1])
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            os.close(reader)

    def log(self) -> str:
        return self.log_path.read_text()

    def control(self) -> ControlClient:
        return ControlClient(self.control_path)

    def port(self, number: int) -> dict:
        """Returns the control socket's entry of a port."""
        with self.control() as control:
            return next(port for port in control.request("ports") if port["port"] == number)

    def stop(self) -> int:
        """Sends SIGTERM; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def wait_for(condition, what: str) -> None:
    """Poll with a deadline, for what a process reports but does not announce."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_S} s"
        time.sleep(0.01)


def ethernet(kind: int, payload: bytes = b"", dst: int = 2, src: int = 1) -> bytes:
    return dst.to_bytes(6, "big") + src.to_bytes(6, "big") + kind.to_bytes(2, "big") + payload
