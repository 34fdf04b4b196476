# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job that does not start: all ranks go by Gloo, or all fail, whatever happens to one of them meanwhile."""

from __future__ import annotations

import json
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.protocol import netfold_pb2 as pb  # noqa: E402
from netfold.traffic.errors import (  # noqa: E402
    ConflictingTimeoutsError,
    ControllerUnreachableError,
    DifferentFallbacksError,
    JobRefusedError,
    TrafficError,
)
from netfold.traffic.pytorch import joining, rendezvous  # noqa: E402
from netfold.traffic.pytorch.collectives import collectives_of  # noqa: E402
from netfold.traffic.pytorch.flight_recorder import FlightRecorder  # noqa: E402
from netfold.traffic.pytorch.options import TorchOptions  # noqa: E402
from netfold.traffic.pytorch.published import HostInfo  # noqa: E402
from netfold.traffic.pytorch.rendezvous import RankLayout  # noqa: E402
from netfold.traffic.pytorch.session import Session, open_session  # noqa: E402
from tests.torch.world import Fabric, World, carrier  # noqa: E402

FULL = "link h1-leaf1 has nothing left"
GLOO = TorchOptions(fallback="gloo", fallback_s=4.0)
TIMEOUT_S = 60.0


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fabric]:
    fabric = Fabric(["h1", "h2"], tmp_path)
    monkeypatch.setenv("NETFOLD_CONTROLLER", fabric.environment["NETFOLD_CONTROLLER"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield fabric
    fabric.close()


@pytest.fixture
def store() -> dist.Store:
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=TIMEOUT_S))
    return store


def at_all_ranks(run: Callable[[int], Any], ranks: int = 2) -> list[Any]:
    """Return the result of `run` of each rank, or its exception."""

    def of(rank: int) -> Any:
        try:
            return run(rank)
        except Exception as error:
            return error

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(of, range(ranks)))


def layout_of(store: dist.Store, rank: int, options: TorchOptions, host: str = "") -> RankLayout:
    info = HostInfo(f"m{rank}", (), host or f"h{rank + 1}", f"nonce{rank}")
    return rendezvous.rendezvous(store, rank, 2, options, TIMEOUT_S, info)


def session_of(store: dist.Store, rank: int, layout: RankLayout) -> Session:
    own = dist.PrefixStore(layout.session, store)
    recorder = FlightRecorder(layout.job, "0", (0, 1), rank)
    return open_session(layout, own, rank, recorder, TIMEOUT_S)


def reasons(store: dist.Store, options: TorchOptions = GLOO, hosts: Sequence[str] = ("h1", "h2")) -> set[str]:
    """Return the reasons for which the ranks go by Gloo: one if they agree. Raises what they raise."""

    def run(rank: int) -> str:
        session = session_of(store, rank, layout_of(store, rank, options, hosts[rank]))
        reason = session.fallback_reason
        session.close()
        return reason

    return set(at_all_ranks(run))


def all_kinds() -> tuple[str, list[float]]:
    """Return the reason for Gloo, and the results of one call of each kind."""
    found = collectives_of(dist.group.WORLD)
    assert found is not None
    assert carrier() == carrier(dist.new_group()) == "gloo"
    rank, size = dist.get_rank(), dist.get_world_size()
    total, mean, root = (
        torch.full((5000,), rank + 1.0),
        torch.full((3,), rank + 1.0),
        torch.full((3,), float(rank)),
    )
    dist.all_reduce(total)
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    dist.broadcast(root, 1)
    gathered = torch.empty(size)
    dist.all_gather_into_tensor(gathered, torch.tensor([float(rank)]))
    scattered = torch.empty(2)
    dist.reduce_scatter_tensor(scattered, torch.ones(2 * size))
    averaged = torch.empty(2)
    dist.reduce_scatter_tensor(averaged, torch.full((2 * size,), rank + 1.0), dist.ReduceOp.AVG)
    with pytest.raises(ValueError, match="contiguous"):
        dist.broadcast(torch.zeros(4, 2)[:, 0], 0)
    with pytest.raises(ValueError, match="averages of floats"):
        dist.reduce_scatter_tensor(scattered, torch.ones(2 * size), dist.ReduceOp.MAX)
    dist.barrier()
    sums = [float(t.mean()) for t in (total, mean, root, gathered, scattered, averaged)]
    dist.destroy_process_group()
    return found.fallback_reason, sums


def test_a_program_whose_job_is_refused_runs_by_gloo_as_it_chose(
    fabric: Fabric, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    """Two ranks share a host. Each rank logs the reason, and the report has it for each kind of call."""
    fabric.controller.refuse = FULL
    report = tmp_path / "report.json"
    chosen = {
        "NETFOLD_FALLBACK": "gloo",
        "NETFOLD_REPORT": f"{report}",
        "NETFOLD_GROUP_RATE": "5",
        "NETFOLD_RATE": "9",
    }
    ranks = World(["h1", "h2", "h2"], {**fabric.environment, **chosen})
    try:
        assert ranks.answers() == [(True, None)] * 3
        answers = ranks.run(all_kinds)
    finally:
        ranks.close()
    assert all(FULL in reason for reason, _ in answers)
    assert [sums for _, sums in answers] == [[6.0, 2.0, 1.0, 1.0, 3.0, 2.0]] * 3
    log = capfd.readouterr().err
    assert all(f"rank {rank}: all calls by Gloo: " in log for rank in range(3))
    found = json.loads(report.read_text())
    assert found["verdict"] == "Gloo carries all collectives, which are not measured"
    assert not found["by_netfold"]
    kinds = ("allreduce", "broadcast", "allgather_base", "reduce_scatter_base", "barrier")
    assert [sum(kind in name and FULL in name for name in found["by_gloo"]) for kind in kinds] == [1] * 5


def test_a_program_whose_job_is_refused_fails_if_it_chose_nothing(fabric: Fabric, store: dist.Store):
    fabric.controller.refuse = FULL
    outcomes = at_all_ranks(lambda rank: layout_of(store, rank, TorchOptions()))
    assert all(isinstance(one, JobRefusedError) and FULL in str(one) for one in outcomes)


def test_a_host_that_the_controller_does_not_know(fabric: Fabric, store: dist.Store):
    (reason,) = reasons(store, hosts=("h1", "h9"))
    assert "'h9' is no host" in reason


@pytest.mark.parametrize("options", [GLOO, TorchOptions()])
def test_a_controller_that_is_away(options: TorchOptions, store: dist.Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NETFOLD_CONTROLLER", "127.0.0.1:1")
    monkeypatch.setattr(rendezvous, "_LOOK_UP_S", 0.5)
    outcomes = at_all_ranks(lambda rank: layout_of(store, rank, options))
    if options is GLOO:
        assert len({one.fallback_reason for one in outcomes}) == 1
        assert "the controller at 127.0.0.1:1 does not list its hosts" in outcomes[0].fallback_reason
    else:
        assert isinstance(outcomes[0], ControllerUnreachableError)
        assert str(outcomes[1]) == f"rank 0: {outcomes[0]}"


def test_a_job_that_waits_for_capacity_longer_than_the_program_gave_it(fabric: Fabric, store: dist.Store):
    """The job is canceled: its turn would come, and it would have no member."""
    fabric.controller.are_links_full = True
    at_all_ranks(lambda rank: layout_of(dist.PrefixStore("old", store), rank, TorchOptions(job="old")))
    (reason,) = reasons(store, TorchOptions(job="new", fallback="gloo", fallback_s=1.0))
    assert reason.startswith("rank 0: job new: no assignment for h1 within")
    assert fabric.controller.await_end("new")


@pytest.mark.parametrize("other", [TorchOptions(), TorchOptions(fallback="gloo", fallback_s=5.0)])
def test_ranks_that_chose_differently_are_refused(other: TorchOptions, fabric: Fabric, store: dist.Store):
    """The controller would admit the job."""
    first, second = at_all_ranks(lambda rank: layout_of(store, rank, other if rank else GLOO))
    assert isinstance(first, DifferentFallbacksError)
    assert str(first) == (
        f"fallback is '{other.fallback_rule}' at rank 1 and 'gloo after 4 s' at rank 0; expected the same at all ranks"
    )
    assert isinstance(second, TrafficError)
    assert str(second) == f"rank 0: {first}"
    assert not fabric.controller.jobs


def test_a_late_rank_does_not_use_up_the_time_for_the_start(fabric: Fabric, store: dist.Store):
    options = TorchOptions(fallback="gloo", fallback_s=2.0)

    def run(rank: int) -> str:
        if rank:
            time.sleep(options.fallback_s + 1)  # the lateness itself, of more than the time for the start
        session = session_of(store, rank, layout_of(store, rank, options))
        session.close()
        return session.fallback_reason

    assert at_all_ranks(run) == ["", ""]


def test_a_controller_that_dies_when_one_rank_has_joined(
    fabric: Fabric, store: dist.Store, monkeypatch: pytest.MonkeyPatch
):
    """Rank 1 is in the job, rank 0 will never be."""
    fabric.controller.has_targets = False
    layouts: queue.SimpleQueue[RankLayout] = queue.SimpleQueue()
    dead = threading.Event()

    def die(number: int, member: pb.MemberUpdate) -> None:
        if member.host == "h1":
            assert dead.wait(TIMEOUT_S)
            raise RuntimeError("the controller is dead")

    def run(rank: int) -> str:
        layout = layout_of(store, rank, GLOO)
        layouts.put(layout)
        session = session_of(store, rank, layout)
        session.close()
        return session.fallback_reason

    def kill() -> None:
        own = dist.PrefixStore(layouts.get(timeout=TIMEOUT_S).session, store)
        own.wait(["outcome1"], timedelta(seconds=TIMEOUT_S))
        assert json.loads(own.get("outcome1")) == ""
        fabric.stop_controller()

    monkeypatch.setattr(fabric.controller, "_await_links", die)
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(kill)
        (reason,) = set(at_all_ranks(run))
        dead.set()
        killed.result()
    assert reason.startswith("rank 0: job torch-")


@pytest.mark.parametrize("lost", [0, 1])
def test_a_rank_that_dies_before_the_decision_ends_all_in_an_error(
    lost: int, fabric: Fabric, store: dist.Store, monkeypatch: pytest.MonkeyPatch
):
    """It has read the layout, and nothing of it comes thereafter. The other rank has joined the job, and leaves it."""
    monkeypatch.setattr(joining, "_OUTCOME_S", 0.5)
    fabric.controller.has_targets = False
    options = TorchOptions(fallback="gloo", fallback_s=2.0)

    def run(rank: int) -> Session | None:
        layout = layout_of(store, rank, options)
        return None if rank == lost else session_of(store, rank, layout)

    error = at_all_ranks(run)[1 - lost]
    assert isinstance(error, TrafficError)
    assert ("'decision'" if lost == 0 else "'outcome1'") in str(error)


@pytest.mark.parametrize("lost", [0, 2])
def test_a_process_that_is_killed_while_the_job_starts(
    lost: int, fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """No rank goes by Gloo, and none is in the job. With rank 0 the store dies, too."""
    hosts = ["h1", "h2", "h3"]
    fabric.controller.hosts = hosts
    joining_hosts, killed = threading.Semaphore(0), threading.Event()

    def hold(number: int, member: pb.MemberUpdate) -> None:
        if member.host == hosts[lost]:
            joining_hosts.release()
            killed.wait(TIMEOUT_S)

    monkeypatch.setattr(fabric.controller, "_await_links", hold)
    chosen = {"NETFOLD_FALLBACK": "gloo", "NETFOLD_FALLBACK_S": "5"}
    ranks = World(hosts, {**fabric.environment, **chosen})
    try:
        assert joining_hosts.acquire(timeout=2 * TIMEOUT_S)
        ranks.processes[lost].kill()
        killed.set()
        others = [rank for rank in range(3) if rank != lost]
        for good, text in ranks.answers(others):
            assert not good
            assert text.startswith("DistBackendError: netfold: ")
    finally:
        ranks.close()
    assert fabric.controller.await_end(fabric.controller.jobs[0]["name"])


def test_values_that_make_no_sense():
    with pytest.raises(ValueError, match="fallback is 'nccl'; expected fail or gloo"):
        TorchOptions.of({"fallback": "nccl"})
    with pytest.raises(ValueError, match="fallback_s is 0; expected a time above 0"):
        TorchOptions.of({"fallback_s": 0.0})
    with pytest.raises(ConflictingTimeoutsError, match="fallback_s is 4, and the group's timeout 4 s"):
        GLOO.within(4.0)
    assert TorchOptions(fallback="gloo").start_within(1800) == 30
    assert TorchOptions(fallback="gloo").start_within(20) == 10
    assert GLOO.start_within(6.0) == 3, "ranks that were late have left no more of the group's timeout"


@pytest.mark.parametrize(
    ("published", "where"),
    [
        ({"version": [1]}, "version: "),
        ({"addresses": None}, "addresses: "),
        ({"job_before": {"name": "job", "generation": "1", "token": "secret"}}, "job_before.generation: "),
        (None, "all: "),
    ],
)
def test_all_ranks_hear_of_one_that_publishes_no_host(
    published: dict[str, object] | None, where: str, fabric: Fabric, store: dist.Store
):
    infos = [HostInfo(f"m{rank}", (), f"h{rank % 2 + 1}", "new") for rank in range(3)]

    def of(rank: int) -> Any:
        if rank < 2:
            return rendezvous.rendezvous(store, rank, 3, TorchOptions(), TIMEOUT_S, infos[rank])
        store.wait(["session"])
        text = "{" if published is None else json.dumps({**asdict(infos[rank]), **published})
        return store.set(f"{store.get('session').decode()}/host2", text)

    first, second, _ = at_all_ranks(of, 3)
    assert isinstance(first, TrafficError)
    assert isinstance(second, TrafficError)
    assert f"rank 2 published no description of its host: {where}" in f"{first}"
    assert "secret" not in f"{first}"
    assert f"{second}" == f"rank 0: {first}"
    assert fabric.controller.jobs == []
