# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Scatters, gathers and sums of one job through real switches that lose packets: with targets each worker gets the same
bits as without."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from netfold.p4src.manifest import COMPILED, MANIFEST, P4INFO_SUFFIX
from netfold.protocol import netfold_pb2 as pb
from netfold.testbed.errors import ProcessFailedError
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.submitted_job import Results
from netfold.testbed.testbed import Testbed
from tests.testbed.test_scenarios import RESTARTED, fabric_status, losses, until

pytestmark = [pytest.mark.root, pytest.mark.mininet]

MEMBER = Path(__file__).with_name("collective_member.py")
CALLS = {"softswitch": 12, "bmv2": 3}


@pytest.fixture(scope="module", params=["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def system(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    if request.param == "bmv2" and shutil.which("simple_switch_grpc") is None:
        pytest.skip("simple_switch_grpc is not on PATH")
    with Testbed(
        target=request.param, lanes=64, name="coll", first_grpc_port=9860, controller_options=RESTARTED
    ) as running:
        yield running


Fault = Callable[[Testbed, ProcessGroup], None]


def _restart_leaf(system: Testbed, _: ProcessGroup) -> None:
    """Its registers are empty then: a new epoch, in which workers make calls again or are ready (E9, E10)."""
    system.net.switches["leaf1"].restart()


def _restart_controller(system: Testbed, _: ProcessGroup) -> None:
    system.controller.kill()
    system.start_controller()


def _kill_worker(_: Testbed, members: ProcessGroup) -> None:
    members.kill("h2")


def _at_random_bytes(
    system: Testbed, seed: int, faults: Sequence[Fault], members: ProcessGroup
) -> Callable[[], None]:
    """A function to call periodically: it causes the next fault when the first worker has sent some more bytes, so that
    calls are in any phase."""
    draw, left = random.Random(seed), list(faults)
    link = system.workers[0], system.fabric.attachment(system.workers[0])
    due = system.net.link_bytes()[link] + draw.randrange(20_000, 400_000)

    def poll() -> None:
        nonlocal due
        if left and system.net.link_bytes()[link] >= due:
            left.pop(0)(system, members)
            due = system.net.link_bytes()[link] + draw.randrange(20_000, 400_000)

    return poll


def _run(
    system: Testbed,
    folder: Path,
    name: str,
    seed: int,
    faults: Sequence[Fault] = (),
    options: Sequence[object] = (),
    **spec: object,
) -> Results:
    workers = system.workers[:4]
    system.controller.wait_switches(60.0, system.check)  # the last fault of a job may be a restart
    system.submit(name, workers=workers, lease_ms=20000, **spec)
    where, calls = system.controller.address, CALLS[system.wanted_target]
    outs = {host: folder / f"{name}-{host}.json" for host in workers}
    tasks = [
        HostTask(host, [sys.executable, MEMBER, where, name, host, seed, calls, out, *options], out)
        for host, out in outs.items()
    ]
    with ProcessGroup(system.net, tasks) as members:
        told = members.wait(150, _at_random_bytes(system, seed, faults, members) if faults else system.check)
    system.controller.wait_ended(name, 30.0)
    return told


@pytest.mark.parametrize(
    ("scheme", "loss"),
    [
        ("panama", 0.02),
        pytest.param("switchml", 0.0, marks=pytest.mark.slow),
        pytest.param("none", 0.02, marks=pytest.mark.slow),
    ],
)
def test_each_worker_gets_the_same_bits_with_and_without_targets(
    system: Testbed, tmp_path: Path, scheme: str, loss: float
) -> None:
    with losses(system, loss):
        targeted = _run(system, tmp_path, f"{scheme}-targets", 17, scheme=scheme, targets="required")
        sums = _run(system, tmp_path, f"{scheme}-sums", 17, scheme=scheme, targets="off")
    assert {r["targets"] for r in targeted.values()} == {"ON"}
    assert {r["targets"] for r in sums.values()} == {"OFF"}
    for host, told in targeted.items():
        assert told["digests"] == sums[host]["digests"]
    assert len({name for name, _ in targeted[system.workers[0]]["digests"]}) > 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_switches_and_controllers_that_start_again_in_any_phase_change_no_bit(
    system: Testbed, tmp_path: Path, seed: int
) -> None:
    """E8 to E12, with real processes."""
    if system.wanted_target != "softswitch":
        pytest.skip("a BMv2 takes a minute to start again")
    faults = random.Random(seed).choices([_restart_leaf, _restart_controller], k=3)
    faults = [_restart_leaf, *faults]
    scheme = ("panama", "switchml", "panama")[seed - 1]
    targeted = _run(system, tmp_path, f"harmed-{seed}", seed, faults, scheme=scheme, targets="required")
    sums = _run(system, tmp_path, f"unharmed-{seed}", seed, scheme=scheme, targets="off")
    assert max(r["restarts"] for r in targeted.values()) >= 1
    for host, told in targeted.items():
        assert told["digests"] == sums[host]["digests"]


def _without_targets(folder: Path, switch: str, lanes: int) -> Path:
    """A file of switches, one of which runs a program that drops targeted packets, as older ones do."""
    name = f"netfold-v1model-{lanes}"
    program = json.loads((COMPILED / f"{name}.json").read_text())
    for state in program["parsers"][0]["parse_states"]:
        if state["name"] in ("check_target", "parse_short"):
            state["transitions"] = [one for one in state["transitions"] if one["type"] == "default"]
    (folder / f"{name}.json").write_text(json.dumps(program))
    shutil.copy(COMPILED / f"{name}{P4INFO_SUFFIX}", folder)
    manifest = json.loads((COMPILED / MANIFEST).read_text())
    manifest["programs"][name]["targets"] = False
    (folder / MANIFEST).write_text(json.dumps(manifest))
    switches = folder / "switches.yaml"
    device = {"p4info": f"{name}{P4INFO_SUFFIX}", "config": f"{name}.json"}
    switches.write_text(json.dumps({"switches": {switch: device}}))
    return switches


@pytest.mark.slow
def test_a_job_that_moves_over_a_switch_without_targets_makes_sums(tmp_path: Path) -> None:
    """No call fails, and none has another bit."""
    switches = _without_targets(tmp_path, "spine2", 64)
    options = (*RESTARTED, "--switches", str(switches))
    steps: list[list[str]] = []
    has_moved = tmp_path / "moved"

    def move(system: Testbed, _: ProcessGroup) -> None:
        steps.append(system.controller.explain("moves"))
        fabric_status(system, pb.GiveBackElementsRequest(elements=["spine2"]))
        fabric_status(system, pb.WithdrawElementsRequest(elements=["spine1"], intent=pb.DRAIN))
        until(lambda: not fabric_status(system)["spine1"], "drained spine")
        steps.append(system.controller.explain("moves"))
        has_moved.touch()

    with Testbed(
        target="softswitch", lanes=64, name="move", first_grpc_port=9820, controller_options=options
    ) as system:
        fabric_status(system, pb.WithdrawElementsRequest(elements=["spine2"], intent=pb.DRAIN))
        last = ("--last-after", has_moved)
        moved = _run(system, tmp_path, "moves", 23, [move], last, scheme="panama", slots=256)
        sums = _run(system, tmp_path, "sums", 23, scheme="panama", targets="off")
    before, after = ("\n".join(step) for step in steps)
    assert "Its packets have targets" in before
    assert "no targets, so all its calls are sums: switch spine2 runs a program" in after
    assert {r["targets"] for r in moved.values()} == {"ON"}
    assert min(r["epoch"] for r in moved.values()) > 1
    for host, told in moved.items():
        assert told["digests"] == sums[host]["digests"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_worker_that_is_killed_in_any_phase_ends_the_job_for_all(
    system: Testbed, tmp_path: Path, seed: int
) -> None:
    name = f"killed-{seed}"
    with pytest.raises(ProcessFailedError):
        _run(system, tmp_path, name, seed, [_kill_worker], targets="required", scheme="panama")
    assert system.controller.wait_ended(name, 60.0).reason
