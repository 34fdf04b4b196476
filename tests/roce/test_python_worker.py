# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The whole way of a RoCE job in one process: a controller with switches, agents, workers in Python, and a network
without devices that adds up what they send."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import pty
import threading
import tty
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from netfold.controller.jobs.records import JobState
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol.connection import Connection
from netfold.topologies.addressing import addresses
from netfold.topologies.spec import load_fabric
from netfold.traffic.agent.messages import Header, MessageType
from netfold.traffic.engine.native import build
from netfold.traffic.errors import (
    AllReduceTimeoutError,
    JobFailedError,
    UnsupportedDtypeError,
    WorkersLeftError,
)
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.roce.recipe import HERE
from netfold.traffic.roce.worker import SOURCES, RoceWorker, _Options, library
from tests.controller.deployment import asked, deployed

HOSTS = ("h1", "h2", "h5", "h6")
ONE_LEAF = ("h1", "h2", "h3")

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/infiniband/verbs.h").exists(), reason="needs libibverbs-dev (its headers)"
)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    fakes = [Path(__file__).with_name(name) for name in ("fake_verbs.c", "fake_verbs.h")]
    headers = [s for s in SOURCES if s.suffix == ".h"]
    folder = tmp_path_factory.mktemp("code")
    copies = {}
    for file in (*SOURCES, *fakes):
        place = folder / "roce" / (file.relative_to(HERE) if file.is_relative_to(HERE) else file.name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.read_bytes())
        copies[file] = place
    sources = [copies[file] for file in (*SOURCES, *fakes) if file not in headers]
    return library(build(sources, folder / "built"))


def start_network(code: ctypes.CDLL, hosts: tuple[str, ...]) -> None:
    known = addresses(load_fabric("leaf-spine-2x2"))
    for index, host in enumerate(hosts):
        code.fake_address(index, str(known.ip(host)).encode())
    code.fake_start(len(hosts), 0, 0)


def check_approximate_sums(worker: RoceWorker, rank: int) -> None:
    """A gradient's first sums are exact, and later ones approximate; others stay exact."""
    gradient = np.random.default_rng(3).standard_normal(70000).astype(np.float32)
    errors = []
    for lossy in (True, True, False):
        array = gradient * (rank + 1)
        worker.all_reduce(array, 60.0, lossy=lossy)
        errors.append(float(((array - 10 * gradient) ** 2).mean() / ((10 * gradient) ** 2).mean()))
    assert max(errors[0], errors[2]) < 1e-9
    assert 1e-5 < errors[1] < 0.005


@pytest.mark.parametrize("numerics", ["integer", "block", "quarter"])
async def test_workers_of_a_job_get_the_sum_and_leave(code: ctypes.CDLL, numerics: str, tmp_path: Path):
    start_network(code, HOSTS)
    dtype = np.int32 if numerics == "integer" else np.float32
    other = np.float32 if numerics == "integer" else np.int32
    where = Connection(f"unix:{tmp_path}/s")

    def work(rank: int) -> np.ndarray:
        with RoceWorker(where, "j", HOSTS[rank], 60.0, code) as worker:
            assert (worker.rank, worker.workers) == (rank, len(HOSTS))
            array = np.arange(-5000, 65000, dtype=dtype) * (rank + 1)
            worker.all_reduce(array, 60.0)
            if numerics != "integer":
                worker.all_reduce(array, 60.0, ReduceOp.AVERAGE)
            if numerics == "quarter":
                check_approximate_sums(worker, rank)
            with pytest.raises(UnsupportedDtypeError):
                worker.all_reduce(np.zeros(4, other))
            return array

    fabric = load_fabric("leaf-spine-2x2")
    async with deployed(fabric, tmp_path, lanes=256) as deployment, asked(deployment) as stub:
        spec = (
            f"name: j\nworkers: [{', '.join(HOSTS)}]\nparameter_servers: 0\ntransport: roce\n"
            f"numerics: {{mode: {numerics}}}\nlease_ms: 30000\n"
        )
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        with ThreadPoolExecutor(len(HOSTS)) as pool:
            loop = asyncio.get_running_loop()
            sums = await asyncio.gather(*(loop.run_in_executor(pool, work, r) for r in range(len(HOSTS))))
        expected = np.arange(-5000, 65000, dtype=np.float64) * 10
        for got in sums:
            np.testing.assert_array_equal(got, sums[0])
            np.testing.assert_allclose(got, expected, rtol=0, atol=0 if numerics == "integer" else 0.05)
        await deployment.until(lambda: deployment.state("j") is JobState.DONE, "the job is done")
    assert code.fake_left_over() == 0


@pytest.mark.parametrize("on_worker_loss", ["fail", "continue"])
async def test_a_worker_that_leaves_stops_no_call_of_the_others(
    code: ctypes.CDLL, on_worker_loss: str, tmp_path: Path
):
    start_network(code, ONE_LEAF)
    where = Connection(f"unix:{tmp_path}/s")
    last = len(ONE_LEAF) - 1

    def work(rank: int) -> list[object]:
        found: list[object] = []
        with RoceWorker(where, "j", ONE_LEAF[rank], 60.0, code) as worker:
            for _ in range(1 if rank == last else 3):
                array = np.full(70000, 10**rank, np.int32)
                try:
                    worker.all_reduce(array, 60.0)
                    found.append(int(array[0]))
                except WorkersLeftError as error:
                    found.append((error.hosts, str(error)))
            if rank == last:
                code.fake_hosts(last)  # of the connections of the next epoch
        return found

    async with (
        deployed(load_fabric("leaf-spine-2x2"), tmp_path, lanes=256) as deployment,
        asked(deployment) as stub,
    ):
        spec = (
            f"name: j\nworkers: [{', '.join(ONE_LEAF)}]\nparameter_servers: 0\ntransport: roce\n"
            f"numerics: {{mode: integer}}\nlease_ms: 30000\non_worker_loss: {on_worker_loss}\n"
        )
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        with ThreadPoolExecutor(len(ONE_LEAF)) as pool:
            loop = asyncio.get_running_loop()
            *stayed, left = await asyncio.gather(
                *(loop.run_in_executor(pool, work, r) for r in range(len(ONE_LEAF)))
            )
        assert left == [111]
        failed = (("h3",), "h3 left the job after 1 calls")
        later = 11 if on_worker_loss == "continue" else failed
        assert stayed == [[111, later, later]] * 2
        await deployment.until(lambda: deployment.state("j") is JobState.DONE, "the job is done")
    assert code.fake_left_over() == 0


async def test_the_worker_that_has_not_called_is_named_and_the_calls_of_the_others_are_dumped(
    code: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NETFOLD_DUMP_DIR", str(tmp_path / "dumps"))
    start_network(code, ONE_LEAF)
    where, late, is_named = Connection(f"unix:{tmp_path}/s"), ONE_LEAF[-1], threading.Event()
    have_called = threading.Barrier(len(ONE_LEAF))

    def work(host: str) -> None:
        with RoceWorker(where, "j", host, 60.0, code) as worker:
            array = np.ones(7000, np.int32)
            if host == late:
                is_named.wait(60.0)
            worker.all_reduce(array, 60.0)
            if host != late:
                with pytest.raises(AllReduceTimeoutError):
                    worker.all_reduce(array, 0.5)
            have_called.wait(60.0)

    async with (
        deployed(load_fabric("leaf-spine-2x2"), tmp_path, lanes=256) as deployment,
        asked(deployment) as stub,
    ):
        spec = (
            f"name: j\nworkers: [{', '.join(ONE_LEAF)}]\nparameter_servers: 0\ntransport: roce\n"
            "numerics: {mode: integer}\nlease_ms: 30000\n"
        )
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec))
        with ThreadPoolExecutor(len(ONE_LEAF)) as pool:
            loop = asyncio.get_running_loop()
            works = [loop.run_in_executor(pool, work, host) for host in ONE_LEAF]
            try:
                found: dict[str, Any] = {}
                async with asyncio.timeout(50):
                    while (found.get("cause"), found.get("elements")) != ("rank never called", [late]):
                        found = json.loads((await stub.DebugJob(pb.JobName(name="j"))).document_json)
            finally:
                is_named.set()
            await asyncio.gather(*works)
    assert len(list((tmp_path / "dumps").iterdir())) == 2
    for host in ONE_LEAF[:2]:
        [file] = (tmp_path / "dumps").glob(f"netfold-calls-j-{host}-*.jsonl")
        header, first, last = map(json.loads, file.read_text().splitlines())
        assert (header["host"], header["calls"]) == (host, 2)
        assert (first["number"], first["bytes"], first["dtype"], first["status"]) == (
            0,
            28000,
            "int32",
            "done",
        )
        assert (last["number"], last["status"], last["outstanding"] > 0) == (1, "timeout", True)
        assert first["submitted"] <= first["started"] <= first["ended"] <= last["submitted"] <= header["time"]


async def test_a_refused_worker_hears_why(code: ctypes.CDLL, tmp_path: Path):
    fabric = load_fabric("leaf-spine-2x2")
    async with deployed(fabric, tmp_path, lanes=256) as deployment, asked(deployment):
        with pytest.raises(JobFailedError, match="there is no job 'none'"):
            await asyncio.to_thread(RoceWorker, Connection(f"unix:{tmp_path}/s"), "none", "h1", 20.0, code)


def test_a_serial_port_leads_to_an_agent(code: ctypes.CDLL):
    """As a virtual machine's, which is no socket."""
    agents, workers = pty.openpty()
    tty.setraw(workers)
    received = bytearray()

    def receive() -> None:
        with contextlib.suppress(OSError):  # the worker has closed its end
            while data := os.read(agents, 1 << 16):
                received.extend(data)

    receiver = threading.Thread(target=receive)
    receiver.start()
    reason = b"job j is canceled: by a test"
    os.write(agents, bytes(Header(type=MessageType.ENDED, size=len(reason))) + reason)
    worker, options = ctypes.c_void_p(), _Options(agent=os.ttyname(workers).encode())
    failed = code.nr_join(ctypes.byref(worker), ctypes.byref(options), 20.0)
    assert (failed, code.nr_error_message(worker)) == (2, reason)
    code.nr_leave(worker)
    os.close(workers)
    receiver.join(20.0)
    os.close(agents)
    assert Header.from_buffer_copy(received).type == MessageType.HELLO
