# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rollout over real switches while jobs run: a good program reaches all switches, a bad one stops after the first,
which gets its own program back. No call fails, and no sum is wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from netfold.p4src.manifest import COMPILED, P4INFO_SUFFIX, Manifest, own_programs, sha256
from netfold.testbed.network.targets import installed_command
from netfold.testbed.testbed import Testbed
from netfold.topologies.generators import leaf_spine
from tests.testbed.counting_ranks import python_ranks, stop_file, until_more_calls

JOBS = {"job0": ("h1", "h3"), "job1": ("h2", "h5"), "job2": ("h4", "h7"), "job3": ("h6", "h8")}
"""The workers of each, at two leaves."""
PROGRAM = "netfold-v1model-64"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def _program(folder: Path, name: str, change: Callable[[bytes], bytes]) -> Path:
    """The P4Info of a program that differs from the one that all switches run."""
    folder.mkdir()
    p4info = folder / f"{name}{P4INFO_SUFFIX}"
    p4info.write_bytes((COMPILED / f"{PROGRAM}{P4INFO_SUFFIX}").read_bytes())
    (folder / f"{name}.json").write_bytes(change((COMPILED / f"{PROGRAM}.json").read_bytes()))
    Manifest(programs={name: own_programs()[PROGRAM]}, artifacts={p4info.name: sha256(p4info)}).write(folder)
    return p4info


def _roll_out(system: Testbed, *options: object) -> tuple[int, dict[str, Any], str]:
    command = [installed_command("netfold"), "fabric", "rollout", *map(str, options), "--json"]
    done = subprocess.run(
        [*command, "--controller", system.controller.address],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def test_a_rollout_over_eight_switches_fails_no_call_of_four_jobs(tmp_path):
    good = _program(tmp_path / "good", "good", lambda blob: blob + b"\n")
    bad = _program(tmp_path / "bad", "bad", lambda _: b'{"not": "a program"}')
    with Testbed(
        leaf_spine(4, 4, 2), target="softswitch", lanes=64, name="roll", first_grpc_port=20080
    ) as system:
        assert len(system.fabric.switches) == 8
        with ExitStack() as stack:
            groups = []
            for job, hosts in JOBS.items():
                system.submit(job, None, hosts, rate=10)
                groups.append(stack.enter_context(python_ranks(system, job, hosts, tmp_path)))
            until_more_calls(tmp_path, JOBS, 6, system.check)
            code, rollout, errors = _roll_out(system, bad)
            assert (code, rollout["state"], rollout["done"]) == (3, "stopped", []), errors
            assert len(rollout["left"]) == 8, "it stops after the first"
            assert f"switch {rollout['left'][0]}: " in rollout["reason"]
            until_more_calls(tmp_path, JOBS, 6, system.check)
            assert _roll_out(system, good, "--no-wait")[0] == 0
            code, canceled, errors = _roll_out(system, "--cancel")
            assert (code, canceled["state"]) == (0, "canceled"), (canceled, errors)
            assert canceled["left"], "the others keep their program"
            until_more_calls(tmp_path, JOBS, 6, system.check)
            code, rollout, errors = _roll_out(system, good)
            assert (code, rollout["state"], rollout["left"]) == (0, "done", []), (rollout, errors)
            assert sorted(rollout["done"]) == sorted(canceled["left"])
            until_more_calls(tmp_path, JOBS, 6, system.check)
            system.controller.kill()
            system.start_controller()  # with the options of before: switches keep the program of the rollout
            system.controller.wait_switches(60.0, system.check)
            epochs = {name: job.epoch for name, job in system.jobs().items()}
            until_more_calls(tmp_path, JOBS, 6, system.check)
            assert {name: job.epoch for name, job in system.jobs().items()} == epochs
            stop_file(tmp_path).touch()
            results = [r for g in groups for r in g.wait(120.0, system.check).values()]
    assert len(results) == 8
    assert [r["wrong"] for r in results] == [[]] * 8
