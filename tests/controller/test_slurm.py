# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The commands that Slurm's prolog, epilog and a timer call, beside a controller, with scripts for Slurm's commands."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from netfold.controller.jobs import file as jobs_file
from netfold.controller.jobs.file import JobFile
from netfold.controller.jobs.records import JobState
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.controller.slurm.request import (
    MARK,
    MOST_RUN_S,
    PLUGIN_OPTION,
    SlurmError,
    SlurmJob,
    job_file,
    number_of,
    read_keys,
)
from netfold.controller.slurm.scheduler import live_jobs, node_names, time_limit_s
from netfold.protocol.connection import Connection
from netfold.protocol.job_token import verified_job
from netfold.protocol.runtime import is_only_user
from netfold.topologies.generators import single_switch
from netfold.traffic.membership.jobs import cancel_job, submit_job
from tests.controller.deployment import Deployment, ready
from tests.docs.blocks import blocks
from tests.house.imports import REPOSITORY

JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_USER": "alice",
    "SLURM_JOB_UID": str(os.getuid()),
    "SLURM_JOB_ACCOUNT": "vision",
    "SLURM_JOB_NODELIST": "h[1-2]",
}
DEADLINE_S = 60.0
GUIDE = REPOSITORY / "docs/how-to/slurm.md"


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


class Slurm:
    """Scripts in the place of Slurm's commands: they print what the files of their names have."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ranks = folder / "ranks"
        self.ranks.mkdir(mode=0o711)
        (folder / "bin").mkdir()
        self.answer(
            "squeue",
            'case "$*" in *%l*) echo 7 10:00; echo 8 10:00; echo 9 10:00 ;; *) cat "${0%/*}/queue" ;; esac',
        )
        self.answer(
            "scontrol", 'case "$1" in show) echo h1; echo h2 ;; *) echo "$@" >> "${0%/*}/updates" ;; esac'
        )
        self.queue("")

    def answer(self, command: str, script: str) -> None:
        path = self.folder / "bin" / command
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def queue(self, lines: str) -> None:
        (self.folder / "bin/queue").write_text(lines)

    @property
    def updates(self) -> str:
        path = self.folder / "bin/updates"
        return path.read_text() if path.exists() else ""

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}


@dataclass
class Site:
    """A controller at a Unix socket, and Slurm."""

    deployment: Deployment
    slurm: Slurm
    address: str

    async def run(self, command: str, *options: str, **environment: str) -> Done:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "netfold", "controller", "slurm", command, "--controller", self.address),
            *("--folder", str(self.slurm.ranks), *options),
            env={**self.slurm.environment, **JOB, **environment},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), DEADLINE_S)
        return Done(process.returncode or 0, out.decode(), " ".join(err.decode().split()))

    def state(self, name: str) -> JobState | None:
        registry = self.deployment.controller.state.registry
        return registry.get(name).state if name in registry else None

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.slurm.ranks.iterdir())


@asynccontextmanager
async def site_of(tmp_path: Path) -> AsyncIterator[Site]:
    async with (
        ready(single_switch(6), tmp_path) as deployment,
        serving(service_of(deployment.controller), f"unix:{tmp_path}/slurm.sock", None) as address,
    ):
        yield Site(deployment, Slurm(tmp_path), address)


ASKS = {PLUGIN_OPTION: "rate:5,scheme:switchml,priority:3"}


async def test_a_prolog_places_the_job_of_the_user_and_an_epilog_ends_it(tmp_path):
    async with site_of(tmp_path) as site:
        done = await site.run("prolog", **ASKS)
        assert done == Done(0, "", "")
        job = site.deployment.job("slurm-7")
        assert (job.state, job.tenant, job.submitted_by) == (JobState.RUNNING, "vision", "alice")
        file = json.loads(job.spec_yaml.removeprefix(MARK))
        assert file["workers"] == ["h1", "h2"]
        assert (file["rate"], file["priority"], file["max_s"]) == (5.0, 3, 660.0)
        path = site.slurm.ranks / "slurm-7"
        assert path.stat().st_mode & 0o777 == 0o600
        variables = dict(line.removeprefix("export ").split("=", 1) for line in path.read_text().splitlines())
        assert set(variables) == {"NETFOLD_JOB", "NETFOLD_JOB_TOKEN", "NETFOLD_CONTROLLER"}
        assert variables["NETFOLD_JOB"] == "slurm-7"
        assert variables["NETFOLD_CONTROLLER"] == site.address
        key = site.deployment.controller.state.registry.key
        assert verified_job(key, variables["NETFOLD_JOB_TOKEN"].encode()) == ("slurm-7", job.serial)
        for _ in range(2):
            assert await site.run("epilog", **ASKS) == Done(0, "", "")
            assert site.state("slurm-7") is JobState.CANCELED
            assert site.files == []


async def test_a_job_that_asks_for_nothing_is_untouched(tmp_path):
    async with site_of(tmp_path) as site:
        site.slurm.answer("squeue", "exit 1")
        site.slurm.answer("scontrol", "exit 1")
        for command in ("prolog", "epilog"):
            for comment in ("", "netfold runs well", "my netfold:rate:1"):
                assert await site.run(command, SLURM_JOB_COMMENT=comment) == Done(0, "", "")
        assert site.state("slurm-7") is None


async def test_a_prolog_that_runs_again_replaces_its_job(tmp_path):
    async with site_of(tmp_path) as site:
        serials = []
        for _ in range(2):
            assert (await site.run("prolog", SLURM_JOB_COMMENT="netfold:rate:5")).code == 0
            serials.append(site.deployment.job("slurm-7").seq)
        assert serials[0] < serials[1]


@pytest.mark.parametrize(
    ("environment", "answers", "code", "reason"),
    [
        ({PLUGIN_OPTION: "", "SLURM_HET_JOB_ID": "7"}, {}, 2, "heterogeneous"),
        ({PLUGIN_OPTION: "rate:fast"}, {}, 2, "netfold's option 'rate:fast'; expected KEY:VALUE of rate,"),
        ({PLUGIN_OPTION: "name:x"}, {}, 2, "netfold's option 'name:x'"),
        ({PLUGIN_OPTION: "scheme:nosuch"}, {}, 2, "nosuch"),
        ({PLUGIN_OPTION: "", "SLURM_JOB_USER": "a b"}, {}, 2, "name 'a b'; expected at most 64"),
        ({PLUGIN_OPTION: ""}, {"scontrol": "echo h1; echo 'h9;x'"}, 2, "no hosts of the fabric: h9;x"),
        ({PLUGIN_OPTION: "min_rate:9999"}, {}, 2, "min_rate is 9999"),
        ({PLUGIN_OPTION: ""}, {"squeue": "echo broken >&2; exit 1"}, 4, "squeue failed: broken"),
        ({PLUGIN_OPTION: ""}, {"squeue": "echo 7 soon"}, 4, "the time limit 'soon'"),
    ],
)
async def test_a_refusal_has_its_reason_and_leaves_nothing(tmp_path, environment, answers, code, reason):
    async with site_of(tmp_path) as site:
        for command, script in answers.items():
            site.slurm.answer(command, script)
        done = await site.run("prolog", **environment)
        assert done.code == code, done.err
        assert reason in done.err
        if "scontrol" not in answers:
            is_final = "Requeue=0 " if code == 2 else ""
            assert site.slurm.updates.startswith(f"update JobId=7 {is_final}AdminComment=netfold: ")
        assert site.state("slurm-7") in (None, JobState.CANCELED)
        assert site.files == []


async def test_a_job_that_finds_no_place_in_time_is_canceled_and_names_no_job_of_others(tmp_path):
    async with site_of(tmp_path) as site:
        whole = {"name": "of-others", "workers": ["h1", "h2"], "scheme": "switchml", "parameter_servers": 0}
        await asyncio.to_thread(submit_job, Connection(site.address), whole, False, 20)
        await site.deployment.settled()
        done = await site.run("prolog", "--within", "1s", **{PLUGIN_OPTION: "min_rate:50,scheme:switchml"})
        assert done.code == 3
        assert "slurm-7: it was not placed within 1 s: " in done.err
        assert "Requeue" not in site.slurm.updates, "there may be room later"
        assert "of-others" not in done.err + site.slurm.updates
        assert site.state("slurm-7") is JobState.CANCELED
        assert site.files == []


async def test_a_prolog_waits_on_while_the_controller_starts_again(tmp_path):
    async with site_of(tmp_path) as site:
        whole = {"name": "of-others", "workers": ["h1", "h2"], "scheme": "switchml", "parameter_servers": 0}
        await asyncio.to_thread(submit_job, Connection(site.address), whole, False, 20)
        watched = asyncio.Event()
        service = service_of(site.deployment.controller)
        watch = service.WatchJob

        def noted_watch(request, context):
            watched.set()
            return watch(request, context)

        service.WatchJob = noted_watch
        async with serving(service, f"unix:{tmp_path}/again.sock", None) as site.address:
            asks = {PLUGIN_OPTION: "min_rate:50,scheme:switchml"}
            waiting = asyncio.ensure_future(site.run("prolog", **asks))
            await asyncio.wait_for(watched.wait(), DEADLINE_S)
        async with serving(service, f"unix:{tmp_path}/again.sock", None):
            await asyncio.to_thread(cancel_job, Connection(site.address), "of-others", "a test", 20)
            assert await waiting == Done(0, "", "")
        assert site.state("slurm-7") is JobState.RUNNING


@pytest.mark.slow
async def test_a_prolog_takes_its_job_back_from_the_controller_that_leads_then(tmp_path):
    """The one that has its job is gone at the deadline."""
    async with site_of(tmp_path) as site:
        whole = {"name": "of-others", "workers": ["h1", "h2"], "scheme": "switchml", "parameter_servers": 0}
        await asyncio.to_thread(submit_job, Connection(site.address), whole, False, 20)
        first, second = (f"unix:{tmp_path}/{name}.sock" for name in ("first", "second"))
        site.address = f"{first},{second}"
        service = service_of(site.deployment.controller)
        async with serving(service, first, None):
            waiting = asyncio.ensure_future(
                site.run("prolog", "--within", "8s", **{PLUGIN_OPTION: "min_rate:50,scheme:switchml"})
            )
            async with asyncio.timeout(DEADLINE_S):
                while site.state("slurm-7") is None:
                    await asyncio.sleep(0.05)  # the registry has no event
        async with serving(service, second, None):
            done = await waiting
        assert (done.code, site.state("slurm-7")) == (3, JobState.CANCELED), done.err


async def test_a_prolog_without_a_controller_ends_at_its_deadline(tmp_path):
    async with site_of(tmp_path) as site:
        site.address = f"unix:{tmp_path}/none.sock"
        done = await site.run("prolog", "--within", "1s", **ASKS)
        assert done.code == 4
        assert "no controller answers at unix:" in done.err


@pytest.mark.parametrize("mode", [0o777, 0o1777])
async def test_a_folder_that_others_write_to_gets_no_token(tmp_path, mode):
    async with site_of(tmp_path) as site:
        site.slurm.ranks.chmod(mode)
        done = await site.run("prolog", **ASKS)
        assert done.code == 4
        assert "others may write to it" in done.err
        assert site.state("slurm-7") is JobState.CANCELED


async def test_what_a_killed_prolog_has_begun_to_write_is_removed(tmp_path):
    async with site_of(tmp_path) as site:
        for command in ("epilog", "sweep"):
            (site.slurm.ranks / "slurm-7.part").write_text("export NETFOLD_JOB_TOKEN=secret\n")
            assert (await site.run(command, **ASKS)).code == 0
            assert site.files == []


async def test_the_callers_filters_of_squeue_end_no_job(tmp_path):
    async with site_of(tmp_path) as site:
        assert (await site.run("prolog", **ASKS)).code == 0
        site.slurm.answer(
            "squeue", 'test "${SQUEUE_USERS-}${SQUEUE_PARTITION-}${SLURM_CLUSTERS-}" || echo "7 RUNNING"'
        )
        for variable in ("SQUEUE_USERS", "SQUEUE_PARTITION", "SLURM_CLUSTERS"):
            assert (await site.run("sweep", **{variable: "x"})).out == "canceled: none\n"
        assert _is_live(site, "slurm-7")


async def test_a_sweep_ends_the_jobs_that_slurm_does_not_know_and_no_others(tmp_path):
    async with site_of(tmp_path) as site:
        for number in ("7", "8", "9"):
            assert (await site.run("prolog", SLURM_JOB_ID=number, **ASKS)).code == 0
        for name in ("slurm-10", "training"):
            keys = {"name": name, "workers": ["h1", "h2"], "scheme": "switchml", "rate": 5}
            await asyncio.to_thread(submit_job, Connection(site.address), keys, False, 20)
        (site.slurm.ranks / "notes").touch()
        site.slurm.answer("squeue", "exit 1")
        assert (await site.run("sweep")).code == 4
        site.slurm.answer("squeue", 'echo "7 RUNNING"; echo nonsense')
        assert (await site.run("sweep")).code == 4
        assert site.files == ["notes", "slurm-7", "slurm-8", "slurm-9"]
        site.slurm.answer("squeue", 'echo "7 RUNNING"; echo "8 COMPLETED"; echo "11 PENDING"')
        assert (await site.run("sweep")).out == "canceled: slurm-8, slurm-9\n"
        live = [
            name for name in ("slurm-7", "slurm-8", "slurm-9", "slurm-10", "training") if _is_live(site, name)
        ]
        assert live == ["slurm-7", "slurm-10", "training"]
        assert site.files == ["notes", "slurm-7"]
        assert (await site.run("sweep")).out == "canceled: none\n"
        done = await site.run("epilog", SLURM_JOB_ID="10", **ASKS)
        assert "job 'slurm-10' is not of Slurm: it is left as it is" in done.err
        assert _is_live(site, "slurm-10")


def _is_live(site: Site, name: str) -> bool:
    state = site.state(name)
    return state is not None and not state.is_terminal


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", {}),
        ("rate:10,numerics:half", {"rate": 10.0, "numerics": {"mode": "half"}}),
        ("priority:-5,lease_ms:3000", {"priority": -5, "lease_ms": 3000}),
        ("on_worker_loss:continue,min_rate:0.5", {"on_worker_loss": "continue", "min_rate": 0.5}),
    ],
)
def test_options_are_keys_of_a_job_file(text, keys):
    assert read_keys(text) == keys


@pytest.mark.parametrize(
    "text",
    [
        "rate",
        "rate:",
        "rate:1,",
        ",",
        "rate:1,rate:2",
        "rate:nan",
        "rate:1e9",
        "rate: 1",
        "workers:h9",
        "scheme:a\nb",
    ],
)
def test_other_options_are_refused(text):
    with pytest.raises(SlurmError, match="expected KEY:VALUE"):
        read_keys(text)


@pytest.mark.parametrize("value", ["", "x", "-1", "7\n", "7;8", "１"])
def test_a_job_without_a_number_is_refused(value):
    with pytest.raises(SlurmError, match="SLURM_JOB_ID is"):
        SlurmJob.of_environment({**JOB, "SLURM_JOB_ID": value})


def test_a_user_without_an_account_is_a_tenant_of_its_own():
    for account in ("", "(null)"):
        assert SlurmJob.of_environment({**JOB, "SLURM_JOB_ACCOUNT": account}).account == "alice"


def test_the_longest_times_are_those_of_a_job_file():
    job = SlurmJob.of_environment(JOB)
    JobFile.model_validate_json(job_file(job, ["h1", "h2"], 400 * 86_400).removeprefix(MARK))
    assert MOST_RUN_S == jobs_file.MOST_RUN_S


def test_a_job_without_a_time_limit_has_no_end():
    job = SlurmJob.of_environment({**JOB, PLUGIN_OPTION: "(null)"})
    file = job_file(job, ["h1", "h2"], None)
    assert "max_s" not in file
    assert number_of("slurm-7", file) == 7
    assert number_of("slurm-7", file.removeprefix(MARK)) is None
    assert number_of("slurm-07x", file) is None


@pytest.mark.parametrize(
    ("shown", "seconds"),
    [("10:00", 600), ("1:00:00", 3600), ("2-01:00:00", 176_400), ("UNLIMITED", None), ("NOT_SET", None)],
)
def test_time_limits(tmp_path, monkeypatch, shown, seconds):
    slurm = Slurm(tmp_path)
    slurm.answer("squeue", f"echo 70 1:00; echo 7 {shown}")  # the other tasks of its array are shown, too
    monkeypatch.setenv("PATH", slurm.environment["PATH"])
    assert time_limit_s(7) == seconds


def script_prints(name: str, changes: dict[str, str], **environment: str) -> str:
    """Return the output of a script of the guide for job 7."""
    (text,) = (block.text for block in blocks(GUIDE) if block.value == name)
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return subprocess.check_output(
        ["sh"], input=text, text=True, env={**environment, "SLURM_JOB_ID": "7", "PATH": os.environ["PATH"]}
    )


def rank_prints(folder: Path, **environment: str) -> str:
    return script_prints("task-prolog", {"/shared/netfold": str(folder)}, **environment)


@pytest.mark.parametrize(
    ("environment", "is_asked"),
    [
        ({}, False),
        ({"SLURM_JOB_COMMENT": "my netfold"}, False),
        ({"SLURM_JOB_COMMENT": "netfold:rate:1;\n'"}, True),
        ({"SLURM_JOB_COMMENT": "netfold"}, True),
        ({PLUGIN_OPTION: "(null)"}, True),
        ({PLUGIN_OPTION: ""}, True),
        ({PLUGIN_OPTION: "rate:1", "SLURM_JOB_COMMENT": "mine"}, True),
    ],
)
def test_the_guides_prolog_needs_netfold_only_for_jobs_that_ask_for_it(environment, is_asked):
    changes = {"/opt/netfold/bin/netfold": "echo asked", "2>> /var/log/slurm/netfold.log": ""}
    assert script_prints("prolog", changes, **environment).startswith("asked") is is_asked


def test_a_task_prolog_prints_the_file_of_its_user(tmp_path):
    file = tmp_path / "slurm-7"
    file.write_text("export NETFOLD_JOB=slurm-7\n")
    assert rank_prints(tmp_path) == file.read_text()
    if os.geteuid() == 0 and not is_only_user():
        os.chown(file, 1, 1)
        assert rank_prints(tmp_path) == ""


def test_a_job_that_another_has_submitted_does_not_inherit_its_netfold_job(tmp_path):
    assert rank_prints(tmp_path, NETFOLD_JOB="slurm-6").split("\n") == [
        "unset NETFOLD_JOB",
        "unset NETFOLD_JOB_TOKEN",
        "",
    ]
    assert rank_prints(tmp_path, NETFOLD_JOB="digits") == ""
    assert rank_prints(tmp_path) == ""


def test_slurm_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    for question in (live_jobs, lambda: time_limit_s(7), lambda: node_names("h1")):
        with pytest.raises(SlurmError, match="cannot be run: No such file"):
            question()
