# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members of etcd as processes on loopback, which are ended and started one by one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient
from netfold.testbed.errors import RunError

START_S = 60.0


@dataclass(frozen=True)
class EtcdPlace:
    """The place of a member: its address, and the words before its command."""

    address: str = "127.0.0.1"
    inside: tuple[str, ...] = ()


class EtcdCluster:
    """Members keep their data below `data`, and their logs in `folder`. `scheme` and `host` are of the address at which
    clients reach them, `more` are further options."""

    def __init__(
        self,
        folder: Path,
        data: Path,
        members: int,
        *,
        scheme: str = "http",
        host: str = "",
        more: Sequence[str | Path] = (),
        places: Sequence[EtcdPlace] = (),
    ) -> None:
        """`places`: of the members, in place of loopback. `host`: the host of all in their address for clients."""
        self._places = places or [EtcdPlace()] * members
        self._folder, self._data = folder, data
        self._scheme, self._host, self._more = scheme, host, more
        count = len(self._places)
        self.ports = list(zip(unused_ports(count), unused_ports(count), strict=True))
        """Ports of clients and of peers, by member."""
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for number in self.numbers:
            self.start(number)

    @property
    def numbers(self) -> Sequence[int]:
        return range(len(self.ports))

    def start(self, number: int) -> None:
        client, place = self.ports[number][0], self._places[number]
        peers = [f"http://{p.address}:{port}" for p, (_, port) in zip(self._places, self.ports, strict=True)]
        cluster = ",".join(f"m{n}={url}" for n, url in enumerate(peers))
        command: list[str | Path] = [
            *place.inside, "etcd", "--name", f"m{number}", "--data-dir", self._data / f"m{number}",
            "--listen-client-urls", f"{self._scheme}://{place.address}:{client}",
            "--advertise-client-urls", f"{self._scheme}://{self._host or place.address}:{client}",
            "--listen-peer-urls", peers[number], "--initial-advertise-peer-urls", peers[number],
            "--initial-cluster", cluster, "--log-level", "error", *self._more,
        ]  # fmt: skip
        with (self._folder / f"m{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def alive(self) -> Sequence[int]:
        return [n for n, process in self._processes.items() if process.poll() is None]

    def process(self, number: int) -> subprocess.Popen[bytes]:
        return self._processes[number]

    def kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes.pop(number).wait()

    def pause(self, number: int) -> None:
        process = self._processes[number]
        process.send_signal(signal.SIGSTOP)
        os.waitpid(process.pid, os.WUNTRACED)  # its threads may run on until one of them takes the signal

    def resume(self, number: int) -> None:
        self._processes[number].send_signal(signal.SIGCONT)

    def close(self) -> None:
        for number in list(self._processes):
            self.kill(number)

    def address(self, prefix: str) -> str:
        """The address of a store."""
        members = (
            f"{self._host or p.address}:{c}" for p, (c, _) in zip(self._places, self.ports, strict=True)
        )
        return f"etcd://{','.join(members)}/{prefix}"

    def leader(self) -> int:
        """The member that leads. Raises RunError if none does in time."""
        end = time.monotonic() + START_S
        with closing(EtcdClient(EtcdAddress.of(self.address("none")))) as client:
            while time.monotonic() < end:
                for number, member in enumerate(client.members()):
                    if member.leads:
                        return number
                time.sleep(0.05)  # an election has no event here
        raise RunError("no member of etcd leads")


def until_it_answers(state: str, log: Path) -> None:
    """Wait until a store can be read. Raises RunError, with the log of a member, if it cannot in time."""
    end = time.monotonic() + START_S
    with closing(EtcdClient(EtcdAddress.of(state))) as client:
        while True:
            try:
                client.load()
            except StoreError as error:
                if time.monotonic() > end:
                    raise RunError(f"etcd does not answer: {log.read_text()}") from error
                time.sleep(0.1)  # the client makes no call for a while
            else:
                return


def unused_ports(count: int) -> list[int]:
    """Ports of loopback that nothing listens at, different ones."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [int(found.getsockname()[1]) for found in sockets]
