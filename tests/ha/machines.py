# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Machines as namespaces on one bridge, and faults of the network between them.

A direction between two machines is cut by a neighbor entry with an address that no interface has: packets leave, and
arrive nowhere. That needs no filter of the kernel, and ends no connection."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from netfold.testbed.network.errors import NetworkError
from netfold.testbed.network.kernel_loss import set_loss
from netfold.testbed.network.tools import tool

NET = "10.77.0"
BRIDGE = "hubbr"
HUB = f"{NET}.1"
"""The address of this process, of the switches and of the client."""
STATE = Path("/var/lib")
"""A controller of root's keeps files of its own below it, so each machine has a folder in its place."""
_NOWHERE = "02:ff:ff:ff:ff:fe"


def ip(*words: object) -> None:
    subprocess.run([tool("ip"), *map(str, words)], check=True, capture_output=True, timeout=60)


class Machine:
    """A namespace with the address NET.`number`, whose processes keep their files below `folder`."""

    def __init__(self, name: str, number: int, folder: Path) -> None:
        self.name = name
        self.address = f"{NET}.{number}"
        self._mac = f"02:00:00:00:00:{number:02x}"
        self.folder = folder / name
        self.folder.mkdir()
        shared = f"mount --bind {self.folder} {STATE} && echo && exec sleep infinity"
        self._holder = subprocess.Popen(
            [tool("unshare"), "--net", "--mount", "sh", "-ec", shared], stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline(), "the namespace of a machine was refused"
        self.inside = (tool("mnexec"), "-a", str(self._holder.pid))
        self._port = f"hub{number}"
        ip("link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", self._holder.pid)
        ip("link", "set", self._port, "master", BRIDGE, "up")
        for words in (
            f"link set eth0 address {self._mac}",
            f"address add {self.address}/24 dev eth0",
            "link set eth0 up",
            "link set lo up",
        ):
            self._ip(*words.split())

    def _ip(self, *words: str) -> None:
        subprocess.run([*self.inside, tool("ip"), *words], check=True, capture_output=True, timeout=60)

    def popen(self, command: Sequence[object], **options: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.inside, *map(str, command)], **options)

    def set_reach(self, other: Machine, is_reached: bool) -> None:
        """Whether packets of this machine reach the other one. Those of the other one are not changed."""
        there = other._mac if is_reached else _NOWHERE
        self._ip("neigh", "replace", other.address, "lladdr", there, "nud", "permanent", "dev", "eth0")

    def set_loss(self, probability: float) -> None:
        """Lose packets of this machine by chance. Raises NetworkError where XDP is forbidden."""
        set_loss(self._port, None, probability)

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()


class Machines:
    """All machines, and which of their packets are lost."""

    def __init__(self, stack: ExitStack, names: Sequence[str], folder: Path) -> None:
        self.by_name: dict[str, Machine] = {}
        self._cut: set[tuple[str, str]] = set()
        self._lossy: set[str] = set()
        for number, name in enumerate(names, 11):
            machine = self.by_name[name] = Machine(name, number, folder)
            stack.callback(machine.close)

    def cut(self, sender: str, receiver: str) -> None:
        self._cut.add((sender, receiver))
        self.by_name[sender].set_reach(self.by_name[receiver], False)

    def mend(self, sender: str, receiver: str) -> None:
        self._cut.discard((sender, receiver))
        self.by_name[sender].set_reach(self.by_name[receiver], True)

    def lose(self, name: str, probability: float) -> bool:
        """Lose packets of a machine; 0: none. False where XDP is forbidden."""
        try:
            self.by_name[name].set_loss(probability)
        except NetworkError:
            return False
        (self._lossy.add if probability else self._lossy.discard)(name)
        return True

    def heal(self) -> None:
        for pair in sorted(self._cut):
            self.mend(*pair)
        for name in sorted(self._lossy):
            self.lose(name, 0.0)


@contextmanager
def machines(names: Sequence[str], folder: Path) -> Iterator[Machines]:
    """Machines of these names, with the bridge in the namespace of this process."""
    with ExitStack() as stack:
        ip("link", "add", BRIDGE, "type", "bridge")
        stack.callback(ip, "link", "delete", BRIDGE)
        ip("address", "add", f"{HUB}/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        yield Machines(stack, names, folder)
