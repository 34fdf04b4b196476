# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs of Debian's Slurm that ask for netfold: they get it, are refused with a reason, are killed, outlive slurmctld,
and leave nothing."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from netfold.protocol import netfold_pb2 as pb
from netfold.traffic.mpi.recipe import build
from tests.mpi.hosts import OWN_MESSAGES
from tests.mpi.launcher import Mpi
from tests.slurm.cluster import READY_S, USER, Cluster, as_user, running_cluster, wait_until
from tests.slurm.packages import COMPLETE

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.root,
    pytest.mark.skipif(
        not COMPLETE.exists(), reason="SKIPPED: needs Debian's Slurm: make test-slurm unpacks it"
    ),
]

RANK = (sys.executable, "-P", str(Path(__file__).with_name("rank.py")))
VARIABLES = [
    "NETFOLD_CONTROLLER",
    "NETFOLD_JOB",
    "NETFOLD_JOB_TOKEN",
    "NETFOLD_TLS_CA",
    "NETFOLD_TLS_SERVER_NAME",
]
MPICH = Mpi("mpich")
JOBS, SUMMING, CANCELED, KILLED = 200, 12, 10, 10
RUN_S = 1500.0
REFUSED_S = 180.0
"""The prolog waits for room for a minute."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


def check_nothing_is_left(cluster: Cluster) -> None:
    assert cluster.netfold_jobs() == {}
    assert [path.name for path in cluster.ranks.iterdir()] == []
    wait_until("all slots are free", lambda: cluster.slots_in_use() == 0)


@pytest.mark.parametrize("ask", ["--netfold=rate:50,priority:5", "--netfold", "--comment=netfold:rate:50"])
def test_ranks_of_a_user_join_the_job_with_its_token_alone(cluster: Cluster, ask: str):
    shown = cluster.run(*as_user(cluster.user), "srun", "-N4", "-n4", "--account=vision", ask, *RANK, 3, 0)
    lines = [line for line in shown.splitlines() if " has [" in line]
    assert len(lines) == 4, shown
    name = re.search(r" in (slurm-\d+) ", lines[0])[1]
    assert set(lines) == {f"{cluster.user} in {name} has {VARIABLES}: sums [10.0]"}
    wait_until("the epilog has ended", lambda: not cluster.jobs())
    job = cluster.netfold_jobs(every=True)[name]
    assert (job.state, job.tenant, job.submitted_by) == (pb.DONE, "vision", cluster.user)
    check_nothing_is_left(cluster)


@pytest.mark.skipif(not MPICH.is_installed, reason="SKIPPED: needs Debian's MPICH: make test-mpi installs it")
def test_mpi_ranks_that_srun_starts_join_the_job(cluster: Cluster):
    """Slurm itself connects them, without mpirun."""
    folder = cluster.folder / "mpi"
    folder.mkdir(mode=0o755)
    program, library = MPICH.compile("sum.c", folder), build(MPICH.command_named("mpicc"), folder)
    own = [f"{name}={value}" for name, value in OWN_MESSAGES[MPICH.name].items()]
    ranks = ("env", f"LD_PRELOAD={library}", "NETFOLD_MPI_REQUIRED=1", *own, program)
    before = set(cluster.netfold_jobs(every=True))
    command = ("srun", "--mpi=pmi2", "-N4", "-n4", "--account=vision", "--netfold=rate:50", *ranks)
    shown = cluster.run(*as_user(cluster.user), *command)
    assert "4" in shown.splitlines(), shown
    wait_until("the epilog has ended", lambda: not cluster.jobs())
    (job,) = (job for name, job in cluster.netfold_jobs(every=True).items() if name not in before)
    assert (job.state, [member.report.chunks > 0 for member in job.members]) == (pb.DONE, [True] * 4)
    check_nothing_is_left(cluster)


def test_the_token_is_the_users_alone(cluster: Cluster):
    look = "stat -c '%U %a' ranks/slurm-$SLURM_JOB_ID; env | grep -o ^NETFOLD_[A-Z_]*; ls ranks"
    shown = cluster.run(
        *as_user(USER), "srun", "-N2", "-n2", "--netfold=rate:50", "sh", "-c", look, check=False
    )
    lines = shown.splitlines()
    assert lines.count(f"{USER} 600") == 2, shown
    assert sorted(set(lines) & set(VARIABLES)) == VARIABLES
    assert shown.count("Permission denied") == 2, "the folder lists no files"
    wait_until("the epilog has ended", lambda: not cluster.jobs())
    jobs = cluster.netfold_jobs(every=True).values()
    assert (USER, USER) in [(job.tenant, job.submitted_by) for job in jobs], (
        "no account is the user's own tenant"
    )
    check_nothing_is_left(cluster)


def test_a_job_that_asks_for_nothing_gets_nothing(cluster: Cluster):
    shown = cluster.run("srun", "-N2", "-n2", "sh", "-c", "env | grep -c ^NETFOLD_JOB || true")
    assert shown.split() == ["0", "0"]
    assert cluster.netfold_jobs() == {}


ASK = ("-N2", "-n2", "--account=vision")


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("rate:fast", "netfold's option 'rate:fast'"),
        ("speed:9", "netfold's option 'speed:9'"),
        ("scheme:nosuch", "nosuch"),
        ("min_rate:9999", "min_rate is 9999"),
        ("priority:50", "priority is 50; its limit is priority=5"),
    ],
)
def test_a_job_with_an_option_that_can_never_be_granted_ends_with_the_reason(
    cluster: Cluster, option: str, reason: str
):
    asks = (*ASK, f"--netfold={option}")
    shown = cluster.run("srun", *asks, "true", check=False)
    assert "PrologSlurmctld failed, job killed" in shown
    number = cluster.run(
        "sbatch", "--parsable", "--requeue", "--output=/dev/null", *asks, "--wrap=true"
    ).strip()
    job = lambda: cluster.run("scontrol", "show", "job", number)  # noqa: E731
    wait_until("the batch job has ended", lambda: "JobState=CANCELLED" in job())
    assert "Restarts=0" in job()
    assert "AdminComment=netfold: " in job()
    assert reason in job()
    wait_until("no job is left", lambda: not cluster.jobs())
    check_nothing_is_left(cluster)


def test_a_batch_job_without_room_waits_again_with_the_reason(cluster: Cluster):
    """The link of a node has 400, and another job has promised more than the half of it."""
    spec = "name: of-others\nworkers: [h1, h2, h3, h4]\nparameter_servers: 0\nmin_rate: 300\njoin_s: 600\n"
    cluster.stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=spec), timeout=READY_S)
    asks = (*ASK, "--netfold=min_rate:300")
    number = cluster.run(
        "sbatch", "--parsable", "--requeue", "--output=/dev/null", *asks, "--wrap=true"
    ).strip()
    job = lambda: cluster.run("scontrol", "show", "job", number)  # noqa: E731
    wait_until("it waits again", lambda: re.search(r"JobState=PENDING.*Restarts=1", job(), re.S), REFUSED_S)
    assert "AdminComment=netfold: it was not placed within" in job()
    assert "of-others" not in job()
    cluster.run("scancel", number)
    cluster.stub.CancelJob(pb.CancelJobRequest(name="of-others"), timeout=READY_S)
    wait_until("no job is left", lambda: not cluster.jobs())
    check_nothing_is_left(cluster)


def test_200_jobs_of_which_a_tenth_is_killed_leave_nothing_though_slurmctld_restarts(cluster: Cluster):
    before = set(cluster.netfold_jobs(every=True))
    (cluster.folder / "out").mkdir()
    (cluster.folder / "out").chmod(0o777)
    endless = f"srun {' '.join(RANK)} 100000 0.2"
    work = [f"srun {' '.join(RANK)} 3 0"] * SUMMING + ["sleep 600"] * CANCELED + [endless] * KILLED
    quick = JOBS - len(work)
    mixed = _mixed(work, ["true"] * quick)
    lines = [
        f"sbatch --parsable -N2 -n2 --account=vision --output={cluster.folder}/out/%j "
        f"{'--netfold=rate:20' if i % 2 else '--comment=netfold:rate:20'} --wrap='{command}'"
        for i, command in enumerate(mixed)
    ]
    script = cluster.folder / "submit"
    script.write_text("set -e\n" + "\n".join(lines) + "\n")
    numbers = cluster.run(*as_user(cluster.user), "sh", script, timeout_s=RUN_S).split()
    assert len(numbers) == JOBS
    to_cancel = [n for n, command in zip(numbers, mixed, strict=True) if command == "sleep 600"]
    to_kill = {n for n, command in zip(numbers, mixed, strict=True) if command == endless}
    state = {"restarted": False, "killed": set(), "canceled": set()}

    def step() -> bool:
        """Kill what runs, and slurmctld after a third of the jobs. Whether all jobs are over."""
        cluster.stub.GetStatus(pb.StatusRequest(), timeout=READY_S)  # raises if the controller has ended
        shown = cluster.run("squeue", "--noheader", "--format=%A %T", check=False)
        rows = dict(line.split() for line in shown.splitlines() if re.fullmatch(r"\d+ [A-Z]+", line.strip()))
        if "error" in shown:
            return False
        running = [n for n, found in rows.items() if found == "RUNNING"]
        for number in set(running) & set(to_cancel) - state["canceled"]:
            cluster.run("scancel", number)
            state["canceled"].add(number)
        for number in set(running) & to_kill - state["killed"]:
            if _kill_ranks(number):
                state["killed"].add(number)
        if not state["restarted"] and len(rows) < JOBS * 2 // 3:
            cluster.restart_slurmctld()
            state["restarted"] = True
        return not rows

    wait_until("all jobs are over", step, RUN_S)
    assert state["restarted"]
    left = set(cluster.netfold_jobs())
    swept = cluster.run(cluster.folder / "sweep") + (cluster.folder / "sweep.log").read_text()
    check_nothing_is_left(cluster)
    made = {n: j for n, j in cluster.netfold_jobs(every=True).items() if n not in before}
    outputs = [path.read_text() for path in (cluster.folder / "out").iterdir()]
    sums = sum(output.count("sums [3.0]") for output in outputs)
    ends = Counter(pb.JobState.Name(job.state) for job in made.values())
    print(  # noqa: T201
        f"{len(made)} netfold jobs: {dict(ends)}; {len(state['canceled'])} canceled, {len(state['killed'])} killed, "
        f"{sums} ranks with sums; left before the sweep: {sorted(left)}; {swept.strip()}"
    )
    assert len(state["canceled"]) + len(state["killed"]) >= JOBS // 10 - 2
    assert sums >= 2 * (SUMMING - 2)
    assert len(made) >= JOBS - 10


def _mixed(some: list[str], many: list[str]) -> list[str]:
    """All of them, `some` at even distances."""
    every = (len(some) + len(many)) // len(some)
    mixed, rest = [], list(many)
    for one in some:
        mixed += [one, *rest[: every - 1]]
        del rest[: every - 1]
    return mixed + rest


def _kill_ranks(number: str) -> int:
    """Kill the processes of a job's step that run rank.py, like a crash of the ranks."""
    killed = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        is_rank = any(word.endswith(b"slurm/rank.py") for word in command[:4])
        if is_rank and f"SLURM_JOB_ID={number}".encode() in environment:
            os.kill(int(folder.name), signal.SIGKILL)
            killed += 1
    return killed
