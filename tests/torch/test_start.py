# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A group that is being made: what other processes of the machine can do to it, and how long it takes at most."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.errors import TrafficError  # noqa: E402
from netfold.traffic.membership import process_jobs  # noqa: E402
from netfold.traffic.pytorch import create_group, joining  # noqa: E402
from netfold.traffic.pytorch.flight_recorder import FlightRecorder  # noqa: E402
from netfold.traffic.pytorch.options import TorchOptions  # noqa: E402
from netfold.traffic.pytorch.published import HostInfo  # noqa: E402
from netfold.traffic.pytorch.rendezvous import RankLayout, rendezvous  # noqa: E402
from netfold.traffic.pytorch.session import Session, open_session  # noqa: E402
from netfold.traffic.pytorch.shared_memory import RankLostError, accept_rank, connect_leader, listen  # noqa: E402

OTHER_USER = 65534
PATIENT_S, SHORT_S = 600.0, 0.5


@pytest.fixture
def name() -> str:
    return f"netfold-test-{secrets.token_hex(8)}"


@pytest.fixture
def patient_store() -> dist.Store:
    """Its own timeout is above the test's."""
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=PATIENT_S))
    return store


def connect(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.connect("\0" + name)
    return sock


def connect_as(user: int, name: str) -> socket.socket:
    """The kernel notes the user where the socket is connected."""
    os.seteuid(user)
    try:
        return connect(name)
    finally:
        os.seteuid(0)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: only root can be another user")
def test_a_process_of_another_user_keeps_no_rank_out(name: str):
    with listen(name) as listener, ExitStack() as sockets:
        for _ in range(3):
            sockets.enter_context(connect_as(OTHER_USER, name)).send(bytes(8))  # as rank 0
        sockets.enter_context(connect_leader(name, 5))
        rank, sock = accept_rank(listener, time.monotonic() + PATIENT_S)
        sockets.enter_context(sock)
        assert rank == 5


@pytest.mark.parametrize("hello", [b"", b"no rank"])
def test_a_connection_that_names_no_rank_keeps_no_rank_out(name: str, hello: bytes):
    with listen(name) as listener, connect(name) as other:
        other.send(hello) if hello else other.close()
        with connect_leader(name, 3):
            rank, sock = accept_rank(listener, time.monotonic() + PATIENT_S)
            sock.close()
            assert rank == 3


def test_a_rank_that_does_not_connect_is_an_error_at_the_deadline(name: str):
    with (
        listen(name) as listener,
        pytest.raises(RankLostError, match="not all ranks of this host connected: timed out"),
    ):
        accept_rank(listener, time.monotonic() + SHORT_S)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: only root can be another user")
def test_a_rank_does_not_speak_to_a_leader_of_another_user(name: str):
    os.seteuid(OTHER_USER)
    try:
        listener = listen(name)
    finally:
        os.seteuid(0)
    with listener, pytest.raises(RankLostError, match=f"belongs to user {OTHER_USER}; expected 0"):
        connect_leader(name, 1)


@pytest.mark.parametrize("rank", [0, 1])
def test_the_group_s_timeout_bounds_its_rendezvous_and_not_the_store_s(
    rank: int, patient_store: dist.Store, monkeypatch: pytest.MonkeyPatch
):
    """The store is the world's, which may have a longer one. The other rank does not come."""
    monkeypatch.setenv("NETFOLD_CONTROLLER", "127.0.0.1:1")
    info = HostInfo("m", (), "", "nonce")
    with pytest.raises(TrafficError, match=r"timeout: no rank set '.*' within the group's timeout"):
        rendezvous(patient_store, rank, 2, TorchOptions(), SHORT_S, info)


def test_the_group_s_timeout_bounds_the_wait_for_the_host_s_first_rank(patient_store: dist.Store):
    layout = RankLayout("s", "", (0, 0))
    with pytest.raises(TrafficError, match="timeout: no rank set 'leader0' within the group's timeout"):
        open_session(layout, patient_store, 1, FlightRecorder("", "0", (0, 1), 1), SHORT_S)


def test_a_rank_that_does_not_join_leaves_its_kept_job_to_those_that_follow(
    tmp_path: Path, patient_store: dist.Store, monkeypatch: pytest.MonkeyPatch
):
    """Another rank of the attempt has ended before this one has joined."""

    def fails(*_: object) -> None:
        raise TrafficError("the job has no workers of this generation")

    monkeypatch.setenv("NETFOLD_CONTROLLER", f"unix:{tmp_path}/c")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(process_jobs, "watch_process", lambda *_, variables: -1)
    monkeypatch.setattr(joining, "_open_reducer", fails)
    layout = RankLayout("s", "kept", (0, 1), names=("h1", "h2"), is_kept=True)
    with pytest.raises(TrafficError, match="no workers of this generation"):
        open_session(layout, patient_store, 0, FlightRecorder("", "0", (0, 1), 0), SHORT_S, run="run")
    (file,) = tmp_path.glob("netfold-*/*.json")
    assert json.loads(file.read_text())["run"] == "run"


class EndedReducer(joining.NoReducer):
    """The job of this reducer has ended."""

    def on_end(self, callback: Callable[[Exception], None]) -> None:
        callback(TrafficError("interrupted"))


def joins(
    reducer: joining.NoReducer, monkeypatch: pytest.MonkeyPatch, store: dist.Store, rank: int
) -> Session:
    """The session of a rank of a kept job, in which it reduces so."""
    monkeypatch.setattr(joining, "_open_reducer", lambda *_: (reducer, None))
    monkeypatch.setattr(joining, "_agree_on_targets", lambda *_: False)
    monkeypatch.setattr(joining, "_enter_job", lambda *_: None)
    layout = RankLayout("s", "kept", (0, 1), names=("h1", "h2"), is_kept=True, is_one_version=True)
    return open_session(layout, store, rank, FlightRecorder("", "0", (0, 1), rank), 60)


def test_no_rank_of_a_kept_job_goes_on_before_all_have_joined(monkeypatch: pytest.MonkeyPatch):
    """It could end their generation at once, by the next `reconfigure`."""
    store = dist.HashStore()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(joins, joining.NoReducer(), monkeypatch, store, 0)
        store.wait(["joined0"])
        assert not first.done()
        for session in (joins(joining.NoReducer(), monkeypatch, store, 1), first.result()):
            session.close()


def test_the_end_of_a_kept_job_ends_the_wait_for_its_ranks(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(TrafficError, match="a rank did not join: interrupted"):
        joins(EndedReducer(), monkeypatch, dist.HashStore(), 0)


def test_the_end_of_the_store_ends_the_wait_for_ranks(monkeypatch: pytest.MonkeyPatch):
    """Rank 0 may have it, and die."""
    host = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    store = dist.TCPStore("127.0.0.1", host.port, is_master=False, wait_for_workers=False)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(joins, joining.NoReducer(), monkeypatch, store, 0)
        host.wait(["joined0"])
        del host
        with pytest.raises(dist.DistError):
            first.result(PATIENT_S)


def test_steps_of_making_a_group_share_its_timeout(
    patient_store: dist.Store, monkeypatch: pytest.MonkeyPatch
):
    """Each has what the steps before have left of it."""
    left = []

    def found(*arguments: object, **_: object) -> RankLayout:
        left.append(arguments[-1])
        time.sleep(SHORT_S)
        return RankLayout("s", "", (0,))

    def joined(*arguments: object, **_: object) -> SimpleNamespace:
        left.append(arguments[-1])
        time.sleep(SHORT_S)
        return SimpleNamespace(close=lambda: left.append("closed"), fallback_reason="")

    def connected(*arguments: object) -> None:
        left.append(arguments[-1])
        raise RuntimeError("Gloo cannot connect")

    monkeypatch.setattr(create_group, "rendezvous", found)
    monkeypatch.setattr(create_group, "open_session", joined)
    monkeypatch.setattr(create_group, "_create_gloo", connected)
    options = SimpleNamespace(
        timeout=timedelta(seconds=PATIENT_S),
        group_rank=0,
        group_size=1,
        group_id="0",
        global_ranks_in_group=[],
        store=patient_store,
    )
    with pytest.raises(RuntimeError, match="Gloo cannot connect"):
        create_group.create_with_job(options, None)
    assert left[0] == PATIENT_S
    assert left[1] <= PATIENT_S - SHORT_S
    assert left[2] <= PATIENT_S - 2 * SHORT_S
    assert left[3] == "closed", "the group leaves the job, which would keep its share of the links"


def test_a_pytorch_that_is_too_old_is_refused_by_its_version():
    program = "import torch; torch.__version__ = '2.5.1'; import netfold.traffic.pytorch.work"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith("ImportError: netfold needs PyTorch 2.6 or newer; this is 2.5.1\n")
