# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from netfold.controller.jobs import etcd_client
from netfold.controller.jobs.engine import FileEngine, StoreEngine
from netfold.controller.jobs.etcd_engine import engine_of
from netfold.controller.service.security import Security
from tests.controller.etcd_server import DEADLINE_S, EtcdServer, etcd_server
from tests.traffic.tls import make_certificate


@pytest.fixture(scope="session")
def security(tmp_path_factory: pytest.TempPathFactory) -> Security:
    made = make_certificate(tmp_path_factory.mktemp("tls"), "localhost")
    pair = made.certificate.read_bytes(), made.key.read_bytes()
    return Security(*pair, frozenset({"a-token-of-an-operator"}), frozenset({"a-token-of-a-worker"}))


@pytest.fixture(scope="session")
def etcd_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with etcd_server(tmp_path_factory.mktemp("etcd")) as server:
        yield server


@pytest.fixture
def etcd(etcd_cluster: EtcdServer, monkeypatch: pytest.MonkeyPatch) -> EtcdServer:
    """A cluster that may answer late, as the machine may be busy: no change of the test is refused for that."""
    for limit in ("ATTEMPT_S", "CALL_S", "SHORT_CALL_S", "LOAD_S", "LOAD_ATTEMPT_S"):
        monkeypatch.setattr(etcd_client, limit, DEADLINE_S)
    return etcd_cluster


Kept = Callable[[], StoreEngine]


@pytest.fixture(params=["file", "etcd"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Kept:
    """Makes engines of one store, as processes have them one after the other."""
    if request.param == "file":
        return lambda: FileEngine(tmp_path / "db")
    state = request.getfixturevalue("etcd").state()
    return lambda: engine_of(state)
