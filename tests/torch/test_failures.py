# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Faults end in torch's usual error at all ranks that are left, within the group's timeout."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.errors import (  # noqa: E402
    ConflictingTimeoutsError,
    ControllerUnreachableError,
    JobFailedError,
    TrafficError,
    UnknownHostError,
)
from netfold.traffic.membership import jobs  # noqa: E402
from netfold.traffic.membership.job_options import LEASE_MS  # noqa: E402
from netfold.traffic.membership.jobs import KeptJob  # noqa: E402
from netfold.traffic.membership.process_jobs import CANCELED_BY  # noqa: E402
from netfold.traffic.pytorch.kept_job import Succession  # noqa: E402
from netfold.traffic.pytorch.options import TorchOptions  # noqa: E402
from netfold.traffic.pytorch.published import HostInfo  # noqa: E402
from netfold.traffic.pytorch.rendezvous import RankLayout, rendezvous  # noqa: E402
from tests.process_watches import kill_watches  # noqa: E402
from tests.torch.world import Fabric, World, free_port, rank_environment, world  # noqa: E402


def add_up(times: int) -> None:
    for _ in range(times):
        dist.all_reduce(torch.ones(1000))


def train_once() -> None:
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2), init_sync=False)
    model(torch.ones(1, 4)).sum().backward()


def test_a_rank_that_dies_ends_the_others_calls(tmp_path: Path):
    with world(["h1", "h2", "h2"], tmp_path) as (ranks, _):
        ranks.run(add_up, 2)
        ranks.start(add_up, 1, ranks=[0, 1])
        ranks.processes[2].kill()
        lonely, beside = ranks.answers([0, 1])
        assert not lonely[0]
        assert lonely[1].startswith("DistBackendError: netfold: rank 0: all-reduce: job torch-")
        assert beside[1] == "DistBackendError: netfold: rank 1: all-reduce: rank 2 of this host is gone"
        ranks.start(add_up, 1, ranks=[0, 1])
        assert all("DistBackendError" in text for _, text in ranks.answers([0, 1]))


def exit_at_once() -> None:
    os._exit(3)


@pytest.mark.parametrize("hosts", [["h1", "h2"], ["h1", "h2", "h2", "h3"]])
@pytest.mark.parametrize("is_killed", [True, False])
def test_the_others_calls_end_when_a_process_dies_and_not_with_a_lease(
    tmp_path: Path, hosts: list[str], is_killed: bool
):
    """No lease of this controller expires."""
    with world(hosts, tmp_path) as (ranks, fabric):
        fabric.controller.has_leases = True
        ranks.run(add_up, 2)
        others, lost = range(len(hosts) - 1), len(hosts) - 1
        ranks.start(add_up, 1, ranks=list(others))
        if is_killed:
            ranks.processes[lost].kill()
        else:
            ranks.start(exit_at_once, ranks=[lost])
        for rank, (good, text) in enumerate(ranks.answers(list(others))):
            assert not good
            assert text.startswith(f"DistBackendError: netfold: rank {rank}: all-reduce: ")
            causes = [f"the watch of rank {lost} at host {hosts[lost]}: its process"]
            if (
                hosts[rank] in hosts[:rank]
            ):  # the first rank of its host, which has heard of it, may be gone by then
                causes.append("the first rank of this host is gone")
            assert any(cause in text for cause in causes), text


def largest() -> None:
    """By Gloo, because of its size."""
    dist.all_reduce(torch.ones(50_000), op=dist.ReduceOp.MAX)


def test_calls_by_gloo_end_with_the_job(tmp_path: Path):
    """Ranks whose neighbors live end, too: Gloo itself would wait for the group's timeout."""
    with world(["h1", "h2", "h2", "h3"], tmp_path) as (ranks, fabric):
        ranks.run(largest)
        ranks.start(largest, ranks=[0, 1, 2])
        assert not any(pipe.poll() for pipe in ranks.pipes)
        fabric.controller.end_all("link h3-leaf1 is down")
        for rank, (good, text) in enumerate(ranks.answers([0, 1, 2])):
            assert not good
            assert text.startswith(f"DistBackendError: netfold: rank {rank}: allreduce by Gloo: ")
            cause = "rank" if rank == 2 else "link h3-leaf1 is down"
            assert cause in text


def test_a_rank_that_stands_still_holds_up_the_job_and_does_not_end_it(tmp_path: Path):
    with world(["h1", "h2"], tmp_path) as (ranks, fabric):
        stopped = ranks.processes[1].pid
        os.kill(stopped, signal.SIGSTOP)
        os.waitid(os.P_PID, stopped, os.WSTOPPED | os.WNOWAIT)
        ranks.start(add_up, 1)
        os.kill(stopped, signal.SIGCONT)
        assert ranks.answers() == [(True, None)] * 2
        assert len(fabric.controller.live()) == 1


def test_a_rank_that_dies_while_it_submits_leaves_no_job(tmp_path: Path):
    """Its job would have no member that ends it, and hold the links until its members are late."""
    hosts, worlds = ["h1", "h2"], list[World]()
    fabric = Fabric(hosts, tmp_path)

    def kill() -> None:
        worlds[0].processes[0].kill()

    fabric.controller.on_submit = kill
    worlds.append(World(hosts, fabric.environment))
    try:
        ((good, _),) = worlds[0].answers([1])
        assert not good
        (job,) = fabric.controller.jobs
        assert fabric.controller.await_end(job["name"])
        assert "the watch of rank 0 at host h1: its process" in fabric.controller.reason(job["name"])
    finally:
        worlds[0].close()
        fabric.close()


def summed() -> float:
    one = torch.ones(1000)
    dist.all_reduce(one)
    return float(one.mean())


def summed_in_a_group() -> float:
    one = torch.ones(1000)
    dist.all_reduce(one, group=dist.new_group([0, 1], pg_options={"rate": 10}))
    return float(one.mean())


def test_the_program_after_a_crash_cancels_the_old_jobs_and_runs(tmp_path: Path):
    """Those of all groups. The old world's job takes all of the links."""
    hosts = ["h1", "h2"]
    with world(hosts, tmp_path) as (crashed, fabric):
        assert crashed.run(summed_in_a_group) == [2.0, 2.0]
        old = fabric.controller.live()
        assert len(old) == 2
        fabric.controller.are_links_full = fabric.controller.has_leases = True
        kill_watches(tmp_path)
        for process in crashed.processes:
            process.kill()
            process.join()
        restarted = World(hosts, fabric.environment)
        try:
            assert restarted.answers() == [(True, None)] * len(hosts)
            assert restarted.run(summed) == [2.0, 2.0]
        finally:
            restarted.close()
        assert not set(old) & set(fabric.controller.live())
        assert {fabric.controller.reason(job) for job in old} == {f"canceled by {CANCELED_BY}"}


def test_the_program_after_a_crash_of_other_machines_waits_for_the_lease_of_the_old_job(tmp_path: Path):
    """The old job takes all of the links for as long."""
    hosts = ["h1", "h2"]
    with world(hosts, tmp_path) as (crashed, fabric):
        fabric.controller.are_links_full = fabric.controller.has_leases = True
        assert crashed.run(summed) == [2.0, 2.0]
        kill_watches(tmp_path)
        for process in crashed.processes:
            process.kill()
        (tmp_path / "other").mkdir()
        restarted = World(hosts, {**fabric.environment, "TMPDIR": str(tmp_path / "other")})
        try:
            assert fabric.controller.await_queued(len(hosts)) == hosts
            assert not any(pipe.poll() for pipe in restarted.pipes)
            fabric.controller.expire_leases()
            assert restarted.answers() == [(True, None)] * len(hosts)
            assert restarted.run(summed) == [2.0, 2.0]
        finally:
            restarted.close()


def test_a_network_that_is_gone_ends_backward_in_an_error(tmp_path: Path):
    with world(["h1", "h2"], tmp_path, timeout=8.0) as (ranks, fabric):
        ranks.run(add_up, 1)
        fabric.stop_roots()
        fabric.stop_controller()
        ranks.start(train_once)
        for good, text in ranks.answers():
            assert not good
            assert "DistBackendError: netfold: rank" in text
            assert "timeout before the results; missing" in text


def different_roots() -> None:
    dist.broadcast(torch.ones(100), dist.get_rank())


def different_collectives() -> None:
    tensor = torch.ones(100, dtype=torch.int32)
    dist.all_reduce(tensor) if dist.get_rank() == 0 else dist.broadcast(tensor, 1)


def different_operations() -> None:
    dist.all_reduce(torch.ones(5), dist.ReduceOp.MAX if dist.get_rank() == 0 else dist.ReduceOp.MIN)


def sum_and_average() -> None:
    dist.all_reduce(torch.ones(5), dist.ReduceOp.SUM if dist.get_rank() == 0 else dist.ReduceOp.AVG)


def sum_and_average_of_integers() -> None:
    tensor = torch.ones(5, dtype=torch.int32)
    dist.all_reduce(tensor, dist.ReduceOp.SUM if dist.get_rank() == 0 else dist.ReduceOp.AVG)


def dtypes_of_one_size() -> None:
    dist.all_reduce(torch.ones(6, dtype=torch.float16 if dist.get_rank() == 0 else torch.bfloat16))


def different_groups() -> None:
    """Two groups of all ranks, in another order at each."""
    groups = [dist.new_group(), dist.new_group()]
    for number in (0, 1) if dist.get_rank() == 0 else (1, 0):
        dist.all_reduce(torch.full((5000,), float(number)), group=groups[number])


@pytest.mark.parametrize("hosts", [["h1", "h2"], ["h1", "h1"]])
@pytest.mark.parametrize(
    "what",
    [
        different_roots,
        different_collectives,
        different_operations,
        sum_and_average,
        sum_and_average_of_integers,
        dtypes_of_one_size,
        different_groups,
    ],
)
def test_ranks_in_different_collectives_get_an_error(
    tmp_path: Path, hosts: list[str], what: Callable[[], None]
):
    with world(hosts, tmp_path, timeout=20.0) as (ranks, _):
        ranks.start(what)
        for rank, (good, text) in enumerate(ranks.answers()):
            assert not good
            assert text.startswith(f"DistBackendError: netfold: rank {rank}: ")
            assert "of another collective or group" in text or "in different calls" in text


def empty_store() -> dist.HashStore:
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=30))
    return store


def outcomes(
    store: dist.HashStore, *hosts: str, options: TorchOptions | None = None
) -> list[RankLayout | Exception]:
    """Returns the rendezvous's outcomes at ranks that run on these hosts, each a machine of its own."""

    def of(rank: int) -> RankLayout | Exception:
        info = HostInfo(f"m{rank}", (), hosts[rank], secrets.token_hex(4))
        try:
            return rendezvous(store, rank, len(hosts), options or TorchOptions(), 30, info)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(hosts)) as pool:
        return list(pool.map(of, range(len(hosts))))


@pytest.fixture
def fabric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fabric = Fabric(["h1", "h2"], tmp_path)
    monkeypatch.setenv("NETFOLD_HOST", "h1")
    monkeypatch.setenv("NETFOLD_CONTROLLER", fabric.environment["NETFOLD_CONTROLLER"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield fabric
    fabric.close()


def test_a_job_that_is_refused_is_refused_to_all_ranks(fabric: Fabric):
    fabric.controller.refuse = "link h1-leaf1 is full"
    first, second = outcomes(empty_store(), "h1", "h2")
    assert isinstance(first, JobFailedError)
    assert "refused it: link h1-leaf1 is full" in str(first)
    assert isinstance(second, TrafficError)
    assert str(second) == f"rank 0: {first}"


@pytest.mark.parametrize("lost", [1, 100])
def test_ranks_whose_controller_s_answer_is_lost(
    fabric: Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: int
):
    """Rank 0 repeats its request for a while. It stays in a job that may be there, which its watch ends with it."""
    monkeypatch.setattr(jobs, "_REPEAT_S", 2.0)
    answers = iter(range(lost))

    def lose() -> None:
        if next(answers, None) is not None:
            raise ConnectionResetError("the answer is lost")

    fabric.controller.on_submit = lose
    first, second = outcomes(empty_store(), "h1", "h2")
    assert len(fabric.controller.jobs) == 1
    assert len(list(tmp_path.glob("netfold-*/*.json"))) == 1
    kill_watches(tmp_path)
    if lost == 1:
        assert isinstance(first, RankLayout)
        assert isinstance(second, RankLayout)
    else:
        assert isinstance(first, ControllerUnreachableError)
        assert isinstance(second, TrafficError)
        assert str(second) == f"rank 0: {first}"


class LostStore(dist.HashStore):
    """It has the host of rank 1, and goes away before the layout is there."""

    def set(self, key: str, value: str) -> None:
        if key.endswith("/layout"):
            raise dist.DistNetworkError("Connection reset by peer")
        super().set(key, value)
        if key == "session":
            super().set(f"{value}/host1", json.dumps(asdict(HostInfo("m1", (), "h2", "1"))))


def test_a_store_that_goes_away_after_the_submission_leaves_no_job(fabric: Fabric, tmp_path: Path):
    with pytest.raises(dist.DistNetworkError):
        rendezvous(LostStore(), 0, 2, TorchOptions(), 30, HostInfo("m0", (), "h1", "0"))
    (job,) = fabric.controller.jobs
    assert "canceled by rank 0 cannot publish it" in fabric.controller.reason(job["name"])
    assert not list(tmp_path.glob("netfold-*/*"))


def test_a_job_that_may_not_wait_for_capacity_is_refused_at_once(fabric: Fabric):
    fabric.controller.are_links_full = True
    assert all(
        isinstance(one, RankLayout)
        for one in outcomes(empty_store(), "h1", "h2", options=TorchOptions(job="old"))
    )
    for error in outcomes(empty_store(), "h1", "h2", options=TorchOptions(queue=False)):
        assert "refused it: job old takes all of the links" in str(error)


def test_a_host_that_the_controller_does_not_know(fabric: Fabric):
    error, _ = outcomes(empty_store(), "h1", "h9")
    assert isinstance(error, UnknownHostError)
    assert "'h9' is no host" in str(error)


def test_machines_that_claim_one_host(fabric: Fabric):
    error, _ = outcomes(empty_store(), "h1", "h1")
    assert isinstance(error, UnknownHostError)
    assert "all at host 'h1'" in str(error)


def test_a_rendezvous_ignores_what_an_earlier_attempt_left_in_the_store(fabric: Fabric):
    """As with `torchrun --max-restarts`: the store outlives the processes."""
    store = empty_store()
    first = outcomes(store, "h1", "h2", options=TorchOptions(job="first"))
    late = HostInfo("m1", (), "h2", "new")
    with ThreadPoolExecutor(2) as pool:  # rank 1 is back before rank 0
        second = pool.submit(rendezvous, store, 1, 2, TorchOptions(), 30, late)
        assert not wait([second], timeout=1.0).done
        leader = pool.submit(
            rendezvous, store, 0, 2, TorchOptions(job="second"), 30, HostInfo("m0", (), "h1", "new")
        )
        layouts = [leader.result(30), second.result(30)]
    assert [one.job for one in first if isinstance(one, RankLayout)] == ["first"] * 2
    assert [one.job for one in layouts] == ["second"] * 2
    assert layouts[0].session == layouts[1].session
    assert isinstance(first[0], RankLayout)
    assert first[0].session != layouts[0].session


def test_ranks_beside_one_of_an_earlier_version_follow_none_and_leave_no_job(fabric: Fabric):
    """It can neither follow in a job nor publish that it has joined one, for which the others would wait."""
    store, infos = empty_store(), [HostInfo(f"m{rank}", (), f"h{rank + 1}", "new") for rank in range(2)]
    before = replace(infos[0], job_before=KeptJob("before", 3))
    kept = Succession(is_kept=True)
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(rendezvous, store, 0, 2, TorchOptions(), 30, before, kept)
        store.wait(["session"])
        earlier = asdict(infos[1])
        del earlier["version"]
        store.set(f"{store.get('session').decode()}/host1", json.dumps(earlier))
        layout = leader.result(30)
    assert (layout.is_kept, layout.is_one_version, layout.generation) == (False, False, 0)
    assert [job["name"] for job in fabric.controller.jobs] == [layout.job]


def test_a_rendezvous_ignores_an_earlier_attempt_of_fewer_ranks(fabric: Fabric):
    """As when a node joins an elastic `torchrun`: the new rank is there before rank 0."""
    store = empty_store()
    outcomes(store, "h1", "h2")
    infos = [HostInfo("m0", (), "h1", f"new{rank}") for rank in range(3)]
    with ThreadPoolExecutor(3) as pool:
        added = pool.submit(rendezvous, store, 2, 3, TorchOptions(), 30, infos[2])
        assert not wait([added], timeout=1.0).done
        others = [pool.submit(rendezvous, store, rank, 3, TorchOptions(), 30, infos[rank]) for rank in (0, 1)]
        assert [one.result(30).places for one in (*others, added)] == [(0, 0, 0)] * 3


def test_the_job_is_what_options_and_environment_say(fabric: Fabric, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NETFOLD_NUMERICS", "half")
    monkeypatch.setenv("NETFOLD_PRIORITY", "7")
    options = TorchOptions.of({"job": "mine", "priority": 3})
    for layout in outcomes(empty_store(), "h1", "h2", options=options):
        assert isinstance(layout, RankLayout)
        assert (layout.job, layout.names, layout.places) == ("mine", ("h1", "h2"), (0, 1))
    (job,) = fabric.controller.jobs
    assert job == {
        "name": "mine", "workers": ["h1", "h2"], "parameter_servers": 0, "numerics": {"mode": "half"}, "priority": 3,
        "lease_ms": 20_000,
    }  # fmt: skip


def test_a_lease_as_long_as_the_group_s_timeout_is_refused_to_all_ranks(fabric: Fabric):
    """A lost rank would be a timeout without a name."""
    first, second = outcomes(empty_store(), "h1", "h2", options=TorchOptions(lease_ms=30_000))
    assert isinstance(first, ConflictingTimeoutsError)
    assert str(first).startswith("lease_ms is 30000, and the group's timeout 30 s; expected a lease below")
    assert str(second) == f"rank 0: {first}"
    assert not fabric.controller.jobs


def test_the_lease_follows_a_short_timeout_of_the_group():
    assert TorchOptions().within(1800).lease_ms == LEASE_MS
    assert TorchOptions().within(9).lease_ms == 6000
    assert TorchOptions(lease_ms=5000).within(9).lease_ms == 5000


@pytest.mark.parametrize(
    ("given", "message"),
    [({"jobs": 1}, "pg_options has 'jobs'; the options are job"), (3, "pg_options is of type int")],
)
def test_options_that_are_unknown(given: object, message: str):
    with pytest.raises(ValueError, match=message):
        TorchOptions.of(given)  # type: ignore[arg-type]


def torchrun(folder: Path, program: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """Lines that two ranks of this host print. Fails unless torchrun ends with 0."""
    script = folder / "program.py"
    script.write_text(program)
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        "2",
        *options,
    ]
    done = subprocess.run(
        [*command, str(script), *arguments], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# Both ranks write to one pipe: only a line that is written at once stays whole.
PROGRAM = """
import os, torch, torch.distributed as dist
dist.init_process_group("netfold")
one = torch.ones(4)
dist.all_reduce(one)
os.write(1, f"sum {one.tolist()} {dist.get_backend()}\\n".encode())
dist.destroy_process_group()
"""


def timed_out() -> str:
    group = dist.group.WORLD
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=0.5), group)
    try:
        if dist.get_rank() == 0:
            dist.all_reduce(torch.ones(5000))
    except dist.DistBackendError as error:
        return str(error)
    finally:
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=60), group)
    return ""


def test_a_group_s_timeout_can_be_changed(tmp_path: Path):
    with world(("h1", "h2"), tmp_path) as (ranks, _):
        first, second = ranks.run(timed_out)
        assert "AllReduceTimeout" in first or "time" in first.lower()
        assert second == ""


def test_torchrun_needs_nothing_but_the_name(tmp_path: Path):
    assert torchrun(tmp_path, PROGRAM) == ["sum [2.0, 2.0, 2.0, 2.0] netfold"] * 2


FORKING = """
import atexit, os, torch, torch.distributed as dist
dist.init_process_group("netfold")
child = os.fork()
if child == 0:
    atexit._run_exitfuncs()
    os._exit(3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
one = torch.ones(4)
dist.all_reduce(one)
os.write(1, f"sum {one.tolist()}\\n".encode())
dist.destroy_process_group()
"""


def test_a_forked_child_ends_and_the_group_goes_on(tmp_path: Path):
    assert torchrun(tmp_path, FORKING) == ["sum [2.0, 2.0, 2.0, 2.0]"] * 2


RESTARTING = """
import os, sys, torch, torch.distributed as dist
from pathlib import Path
dist.init_process_group("netfold")
one = torch.ones(4)
dist.all_reduce(one)
first = Path(sys.argv[1])
if dist.get_rank() == 1 and not first.exists():
    first.touch()
    os._exit(1)
dist.barrier()
os.write(1, f"sum {one.tolist()}\\n".encode())
dist.destroy_process_group()
"""


def test_torchrun_restarts_a_group_that_lost_a_rank(tmp_path: Path):
    first = str(tmp_path / "first")
    found = torchrun(tmp_path, RESTARTING, first, options=["--max-restarts", "2"])
    assert found == ["sum [2.0, 2.0, 2.0, 2.0]"] * 2


RAISING = """
import torch, torch.distributed as dist
dist.init_process_group("netfold")
if dist.get_rank() == 1:
    raise ValueError("of the program itself")
dist.all_reduce(torch.ones(4))
"""


def test_a_program_that_raises_ends_the_others_calls(tmp_path: Path, fabric: Fabric):
    script = tmp_path / "program.py"
    script.write_text(RAISING)
    processes, port = [], free_port()
    for rank in range(2):
        own = rank_environment(rank, ["h1", "h2"], port)
        command = [sys.executable, str(script)]
        processes.append(
            subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE, text=True)
        )
    waiting, raising = (process.communicate(timeout=200)[1] for process in processes)
    assert "ValueError: of the program itself" in raising
    assert "DistBackendError: netfold: rank 0: all-reduce: job torch-" in waiting
    assert "canceled by a rank at host h2: its program raised ValueError('of the program itself')" in waiting
