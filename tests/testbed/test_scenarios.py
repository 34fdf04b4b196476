# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Whole systems in Mininet: what becomes of running jobs when things die, and that their sums stay exact."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import grpc
import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.testbed.errors import ProcessFailedError, RunError
from netfold.testbed.fault_injection import FaultInjection
from netfold.testbed.network.targets import installed_command
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.submitted_job import Results, SubmittedJob
from netfold.testbed.testbed import Testbed

pytestmark = [pytest.mark.root, pytest.mark.mininet]

# Gradients of AlexNet's shape at a thousandth of its size, often enough that something can happen in the middle.
LONG = ["--workload", "alexnet", "--model-scale", "0.001", "--iterations", 20, "--timeout", 100]
FINISH_S = 240.0
RESTARTED = ("--switch-restart-timeout", "60")
"""Longer than a switch takes to come back on a loaded machine."""
FEW = ("h1", "h2", "h5", "h6")
"""Two workers at each leaf."""


@pytest.fixture
def system() -> Iterator[Testbed]:
    """The network of a test that harms the network or its controller."""
    with Testbed(
        target="softswitch", lanes=64, name="scen", first_grpc_port=9700, controller_options=RESTARTED
    ) as running:
        yield running


@pytest.fixture(scope="module")
def unharmed() -> Iterator[Testbed]:
    """The network of all tests that harm their own job alone."""
    with Testbed(target="softswitch", lanes=64, name="whole", first_grpc_port=9720) as running:
        yield running


def wait_for_progress(system: Testbed, job: SubmittedJob, lines: int = 2) -> None:
    """Until the first worker is in the middle of its work."""
    until(lambda: job.progress.exists() and len(job.progress.read_text().splitlines()) >= lines, "progress")
    system.check()


def until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within {timeout_s} s"
        time.sleep(0.05)


@contextmanager
def losses(system: Testbed, loss: float) -> Iterator[None]:
    """In each direction of each link."""
    FaultInjection(loss).start_loss(system.net)
    try:
        yield
    finally:
        system.net.clear_faults()


def assert_exact(results: Results) -> None:
    assert sum(r["wrong_elements"] for r in results.values()) == 0
    assert min(r["checked_elements"] for r in results.values()) > 0
    assert len({r["digest"] for r in results.values()}) == 1, "the workers' results differ"


@pytest.mark.slow
def test_five_percent_loss_on_every_link_changes_no_sum(unharmed: Testbed) -> None:
    with losses(unharmed, 0.05):
        flags = ["--workload", "digits", "--epochs", 1]
        job = unharmed.submit("lossy", flags, scheme="grid", parameter_servers=["ps1", "ps2"])
        results = job.result(FINISH_S)
    assert_exact(results)
    assert sum(r["retransmits"] for r in results.values()) > 0
    first = next(iter(results.values()))
    assert first["accuracy"] == first["reference_accuracy"]


@pytest.mark.slow
def test_a_killed_worker_fails_the_job_and_the_others_say_so(unharmed: Testbed) -> None:
    job = unharmed.submit("killed", LONG, FEW, scheme="switchml")
    wait_for_progress(unharmed, job)
    victim = FEW[-1]
    job.workers.kill(victim)
    outcomes = job.workers.outcomes(30.0)
    survivors = {h: o for h, o in outcomes.items() if h != victim}
    assert all(code == 1 for code, _ in survivors.values()), survivors
    assert all(victim in line for _, line in survivors.values()), survivors
    assert unharmed.controller.wait_ended("killed", 10.0).reason


@pytest.mark.slow
def test_a_job_goes_on_without_a_killed_worker_if_it_says_so(unharmed: Testbed) -> None:
    job = unharmed.submit("smaller", LONG, FEW, scheme="switchml", on_worker_loss="continue")
    wait_for_progress(unharmed, job)
    victim = FEW[-1]
    job.workers.kill(victim)
    outcomes = job.workers.outcomes(FINISH_S)
    assert {h for h, (code, _) in outcomes.items() if code == 0} == set(FEW) - {victim}, outcomes


@contextmanager
def started_again(
    system: Testbed, job: SubmittedJob, host: str, command: str, *flags: object
) -> Iterator[ProcessGroup]:
    """Another process of the member, at once, within the lease of the first one, which has been killed."""
    out = job.progress.with_name(f"{host}-again.json")
    member = ["--job", job.name, "--controller", system.controller.address, "--host", host, "--out", out]
    task = HostTask(host, [installed_command("netfold"), "host", command, *member, *flags], out)
    with ProcessGroup(system.net, [task]) as running:
        yield running


@pytest.mark.slow
def test_a_worker_that_is_started_again_at_once_fails_the_job_by_name(unharmed: Testbed) -> None:
    job = unharmed.submit("again", LONG, FEW, scheme="switchml", lease_ms=60_000)
    wait_for_progress(unharmed, job)
    victim = FEW[-1]
    job.workers.kill(victim)
    with started_again(unharmed, job, victim, "worker", *LONG) as again:
        outcomes = {**job.workers.outcomes(30.0), **again.outcomes(30.0)}
    assert all(code == 1 for code, _ in outcomes.values()), outcomes
    assert all(f"the worker of {victim} was started again" in line for _, line in outcomes.values()), outcomes


@pytest.mark.slow
@pytest.mark.parametrize("quorum", [0, len(FEW)])
def test_a_server_that_is_started_again_at_once_costs_an_epoch_and_no_sum(
    unharmed: Testbed, quorum: int
) -> None:
    name = f"server-again-{quorum}"
    with losses(unharmed, 0.01):
        job = unharmed.submit(
            name,
            LONG,
            FEW,
            scheme="none",
            parameter_servers=["ps1"],
            lease_ms=60_000,
            **({"quorum": quorum} if quorum else {}),
        )
        wait_for_progress(unharmed, job)
        job.servers.kill("ps1")
        with started_again(unharmed, job, "ps1", "ps") as again:
            results = job.workers.wait(FINISH_S, unharmed.check)
            assert again.outcomes(FINISH_S)["ps1"][0] == 0
    assert_exact(results)
    assert job.status().epoch >= 2, "it ended before it moved"


def fabric_status(system: Testbed, request: object = None) -> dict[str, list[str]]:
    """The jobs that use each withdrawn element, after a request."""
    with grpc.insecure_channel(system.controller.address) as channel:
        stub = rpc.ControllerStub(channel)
        if isinstance(request, pb.WithdrawElementsRequest):
            stub.WithdrawElements(request, timeout=20)
        if isinstance(request, pb.GiveBackElementsRequest):
            stub.GiveBackElements(request, timeout=20)
        found = stub.GetFabricStatus(pb.FabricStatusRequest(), timeout=20)
    return {element.name: [job.name for job in element.jobs] for element in found.elements}


@pytest.mark.slow
def test_a_killed_controller_is_not_missed_and_takes_up_where_it_was(system: Testbed) -> None:
    job = system.submit("orphan", LONG, FEW, scheme="switchml")
    wait_for_progress(system, job)
    system.controller.kill()
    system.start_controller()
    results = job.result(FINISH_S)
    assert_exact(results)
    assert max(r["restarts"] for r in results.values()) == 0, "traffic of a running job was touched"


@pytest.mark.slow
def test_a_dead_switch_ends_a_run_with_one_line(system: Testbed) -> None:
    job = system.submit("doomed", LONG, FEW, scheme="switchml")
    wait_for_progress(system, job)
    system.net.switches["leaf2"].kill()
    with pytest.raises(RunError, match="leaf2"):
        job.result(FINISH_S)


@pytest.mark.slow
def test_a_killed_worker_ends_the_wait_for_it_with_one_line(unharmed: Testbed) -> None:
    job = unharmed.submit("cut-short", LONG, FEW, scheme="switchml")
    wait_for_progress(unharmed, job)
    job.workers.kill(FEW[0])
    with pytest.raises(ProcessFailedError, match=r"was killed by SIGKILL$") as failed:
        job.result(FINISH_S)
    assert FEW[0] in str(failed.value)


@pytest.mark.slow
def test_a_killed_controller_ends_a_run_with_one_line(system: Testbed) -> None:
    job = system.submit("unled", LONG, FEW, scheme="switchml")
    wait_for_progress(system, job)
    system.controller.kill()
    with pytest.raises(ProcessFailedError, match=r"was killed by SIGKILL$"):
        job.result(FINISH_S)


@pytest.mark.slow
def test_a_worker_that_fails_ends_the_wait_with_its_own_words(unharmed: Testbed) -> None:
    job = unharmed.submit(
        "broken", ["--workload", "no-such-model"], workers=unharmed.workers[:2], scheme="switchml"
    )
    with pytest.raises(ProcessFailedError, match="no-such-model"):
        job.result(FINISH_S)
