# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Ranks that call differently, and ranks that are lost: the others' calls end with an error, as the error handler has
it."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.mpi.launcher import DEADLINE_S, Launcher, Mpi, launcher

pytestmark = pytest.mark.mpi

MISMATCHES = ["count", "datatype", "root", "operation", "nonblocking"]
KEEP_OTHERS = {"openmpi": ["--enable-recovery"], "mpich": ["-disable-auto-cleanup"]}
"""Options of the launchers that otherwise end all ranks when one is lost."""
ENVIRONMENT = {"NETFOLD_LEASE_MS": "2000", "NETFOLD_MPI_ORDERED": "1"}
"""A short lease; and nonblocking calls go through the network."""


def other_errors(programs: Launcher, mpi: Mpi, reason: str, hosts: list[str], left: list[int]) -> list[str]:
    """Runs the program until the ranks that are `left` have ended their calls with MPI_ERR_OTHER: what they print."""
    folder = programs.folder / "classes"
    folder.mkdir()
    program = mpi.compile("failures.c", programs.folder)
    options = KEEP_OTHERS[mpi.name]
    process = programs.start(mpi, hosts, program, reason, folder, environment=ENVIRONMENT, options=options)
    deadline = time.monotonic() + DEADLINE_S
    while process.poll() is None and sum(path.stat().st_size > 0 for path in folder.iterdir()) < len(left):
        assert time.monotonic() < deadline, f"only {list(folder.iterdir())} have ended their calls"
        time.sleep(0.05)
    kill_ranks(program)
    _, printed = process.communicate(timeout=DEADLINE_S)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        str(rank): "MPI_ERR_OTHER" for rank in left
    }, printed
    found = re.findall(r"netfold: rank (\d+): (.*)", printed)
    assert sorted(int(rank) for rank, _ in found) == left
    return [text for _, text in found]


AGENT = f"""#!{sys.executable}
import select
from netfold.traffic.agent.messages import DeparturesMessage, MessageType
from netfold.traffic.mpi import agent

class LateAgent(agent.MemberAgent):
    def _report(self, message):
        super()._report(message)
        if message.kind is MessageType.LEAVE:
            closed = select.poll()
            closed.register(self._worker, 0)  # only that the worker has closed its end
            closed.poll(1000)
            self._worker.send(MessageType.DEPARTURES, bytes(DeparturesMessage(epoch=1)))

agent.MemberAgent = LateAgent
agent.main()
"""
"""An agent that hears of other workers' departures after its own worker has left."""


def kill_ranks(program: Path) -> None:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "exe").resolve() == program:
                os.kill(int(folder.name), signal.SIGKILL)
        except OSError:
            continue


@pytest.mark.parametrize("reason", MISMATCHES)
@pytest.mark.parametrize("hosts", [["h1", "h2", "h3"], ["h1", "h1", "h2"]], ids=["hosts", "host"])
def test_different_calls_are_an_error_at_all_ranks(mpi: Mpi, reason: str, hosts: list[str], tmp_path: Path):
    with launcher(hosts, tmp_path) as programs:
        for text in other_errors(programs, mpi, reason, hosts, [0, 1, 2]):
            assert "different calls" in text


@pytest.mark.parametrize("reason", ["sent more", "sent less"])
def test_a_gather_of_more_or_less_than_is_received_is_an_error_at_all_ranks(
    mpi: Mpi, reason: str, tmp_path: Path
):
    hosts = ["h1", "h2", "h3", "h4"]  # with fewer the MPI library gathers
    with launcher(hosts, tmp_path) as programs:
        for text in other_errors(programs, mpi, reason, hosts, [0, 1, 2, 3]):
            assert "different calls" in text


def test_an_error_ends_a_program_without_a_handler(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2", "h3"]
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("failures.c", tmp_path), "count")
        assert done.returncode != 0
        assert "MPI_Allreduce: the ranks made different calls" in done.stderr


def test_a_lost_rank_fails_the_calls_of_the_others(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2", "h3"]
    with launcher(hosts, tmp_path) as programs:
        for text in other_errors(programs, mpi, "exit", hosts, [0, 2]):
            assert "h2 has ended without MPI_Finalize" in text


def test_a_killed_rank_ends_the_program(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2", "h3"]
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("failures.c", tmp_path), "killed")
        assert done.returncode != 0


def test_a_stopped_rank_fails_the_calls_of_the_others_within_the_lease(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2", "h3"]
    with launcher(hosts, tmp_path) as programs:
        for text in other_errors(programs, mpi, "stopped", hosts, [0, 2]):
            assert "h2 is silent" in text


def test_a_program_that_requires_the_network_prints_why_it_ends(mpi: Mpi, tmp_path: Path):
    """The first rank that aborts ends the others at any time."""
    hosts = ["h1", "h2", "h3", "h4"]
    with launcher(hosts, tmp_path) as programs:
        program = mpi.compile("orders.c", tmp_path)
        for rank in (0, 3) * 3:
            of_hosts = {hosts[rank]: {"NETFOLD_MPI_PYTHON": str(tmp_path / "missing")}}
            done = programs.run(mpi, hosts, program, 7, 20, len(hosts), of_hosts=of_hosts)
            assert done.returncode != 0
            assert f"rank {rank}: the agent cannot be started" in done.stderr


def test_ranks_that_were_given_a_job_join_it_and_submit_none(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2"]
    with launcher(hosts, tmp_path) as programs:
        environment = programs.fabric.submit("slurm-7", hosts)
        done = programs.run(mpi, hosts, mpi.compile("sum.c", tmp_path), environment=environment)
        assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
        assert [job["name"] for job in programs.fabric.controller.jobs] == ["slurm-7"]
        assert programs.fabric.controller.await_end("slurm-7")


def test_changes_that_come_after_a_worker_has_left_do_not_cancel_the_job(mpi: Mpi, tmp_path: Path):
    hosts = ["h1", "h2"]
    agent = tmp_path / "agent"
    agent.write_text(AGENT)
    agent.chmod(0o755)
    environment = {"NETFOLD_MPI_PYTHON": str(agent), "NETFOLD_JOB": "leaves"}
    with launcher(hosts, tmp_path) as programs:
        done = programs.run(mpi, hosts, mpi.compile("sum.c", tmp_path), environment=environment)
        assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
        assert programs.fabric.controller.await_end("leaves")
        assert programs.fabric.controller.reason("leaves") == ""
