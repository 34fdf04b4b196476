# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members of etcd as processes of a test."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from softswitch.testing.ports import free_port

from netfold.controller.jobs.engine import StoreError
from netfold.controller.jobs.etcd_client import EtcdAddress, EtcdClient
from netfold.controller.jobs.etcd_engine import EtcdEngine
from tests.traffic.tls import Tls

DEADLINE_S = 60.0
MEMORY = Path("/dev/shm")
"""Where members write, if it is there: tests of etcd's answers need no disk, whose syncs may take seconds."""
_PREFIXES = (f"store{n}" for n in itertools.count())


class EtcdServer:
    """A cluster of members on loopback, which may be ended and started one by one. With `tls` its certificate is also
    that of clients."""

    def __init__(self, folder: Path, data: Path, members: int, tls: Tls | None) -> None:
        if shutil.which("etcd") is None:
            pytest.skip("SKIPPED: needs etcd on PATH")
        self._folder = folder
        self._data = data
        self._tls = tls
        self._ports = [(free_port(), free_port()) for _ in range(members)]
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        for number in range(members):
            self.start(number)

    @property
    def numbers(self) -> Sequence[int]:
        return range(len(self._ports))

    def start(self, number: int) -> None:
        client, peer = self._ports[number]
        scheme, host = ("https", "localhost") if self._tls else ("http", "127.0.0.1")
        files = ()
        if self._tls:
            files = ("--cert-file", self._tls.certificate, "--key-file", self._tls.key, "--client-cert-auth",
                     "--trusted-ca-file", self._tls.certificate)  # fmt: skip
        cluster = ",".join(f"m{n}=http://127.0.0.1:{p}" for n, (_, p) in enumerate(self._ports))
        command = [
            "etcd", "--name", f"m{number}", "--data-dir", self._data / f"m{number}",
            "--listen-client-urls", f"{scheme}://127.0.0.1:{client}",
            "--advertise-client-urls", f"{scheme}://{host}:{client}",
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", cluster, "--log-level", "error", *files,
        ]  # fmt: skip
        with (self._folder / f"m{number}.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(command, stdout=log, stderr=log)

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

    def state(self, prefix: str | None = None) -> str:
        """The address of a store, by default of a new one."""
        host = "localhost" if self._tls else "127.0.0.1"
        members = ",".join(f"{host}:{client}" for client, _ in self._ports)
        files = (
            f"?ca={self._tls.certificate}&cert={self._tls.certificate}&key={self._tls.key}"
            if self._tls
            else ""
        )
        return f"etcd://{members}/{prefix or next(_PREFIXES)}{files}"

    def engine(self, state: str) -> EtcdEngine:
        return EtcdEngine(EtcdAddress.of(state))


def until_it_answers(state: str, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    with contextlib.closing(EtcdClient(EtcdAddress.of(state))) as client:
        while True:
            try:
                client.load()
            except StoreError:
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)  # the client makes no call for a while
            else:
                return


@contextlib.contextmanager
def etcd_server(folder: Path, members: int = 1, tls: Tls | None = None) -> Iterator[EtcdServer]:
    """A cluster that answers. Its members keep their logs in `folder`."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as data:
        server = EtcdServer(folder, Path(data), members, tls)
        try:
            until_it_answers(server.state("none"), folder / "m0.log")
            yield server
        finally:
            server.close()
