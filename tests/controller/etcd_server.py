# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Members of etcd as processes of a test."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from netfold.controller.jobs.etcd_client import EtcdAddress
from netfold.controller.jobs.etcd_engine import EtcdEngine
from netfold.evaluation.speed.etcd_cluster import EtcdCluster, EtcdPlace, until_it_answers
from tests.traffic.tls import Tls

DEADLINE_S = 60.0
MEMORY = Path("/dev/shm")
"""Where members write, if it is there: tests of etcd's answers need no disk, whose syncs may take seconds."""
_PREFIXES = (f"store{n}" for n in itertools.count())


class EtcdServer(EtcdCluster):
    """A cluster of members on loopback, which may be ended and started one by one. With `tls` its certificate is also
    that of clients."""

    def __init__(
        self, folder: Path, data: Path, members: int, tls: Tls | None, places: Sequence[EtcdPlace] = ()
    ) -> None:
        if shutil.which("etcd") is None:
            pytest.skip("SKIPPED: needs etcd on PATH")
        self._tls = tls
        if tls is None:
            super().__init__(folder, data, members, places=places)
            return
        files = ("--cert-file", tls.certificate, "--key-file", tls.key, "--client-cert-auth",
                 "--trusted-ca-file", tls.certificate)  # fmt: skip
        host = "" if places else "localhost"
        super().__init__(folder, data, members, scheme="https", host=host, more=files, places=places)

    def state(self, prefix: str | None = None) -> str:
        """The address of a store, by default of a new one."""
        tls = self._tls
        files = f"?ca={tls.certificate}&cert={tls.certificate}&key={tls.key}" if tls else ""
        return self.address(prefix or next(_PREFIXES)) + files

    def engine(self, state: str) -> EtcdEngine:
        return EtcdEngine(EtcdAddress.of(state))


@contextlib.contextmanager
def etcd_server(
    folder: Path, members: int = 1, tls: Tls | None = None, places: Sequence[EtcdPlace] = ()
) -> Iterator[EtcdServer]:
    """A cluster that answers. Its members keep their logs in `folder`."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as data:
        server = EtcdServer(folder, Path(data), members, tls, places)
        try:
            until_it_answers(server.state("none"), folder / "m0.log")
            yield server
        finally:
            server.close()
