# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The page beside a real network: a full link, a killed switch, a job that moves, and the same from the recording;
packets of a sandbox in the slots of its switches."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from netfold.controller.recording.recording_file import read_recording
from netfold.testbed.network.targets import installed_command
from netfold.testbed.processes import HostTask, ProcessGroup
from netfold.testbed.submitted_job import SubmittedJob
from netfold.testbed.testbed import Testbed
from tests.testbed.environment_runs import PAIR
from tests.web.chromium import browser, expect, go_to_end, needs_chromium, open_page
from tests.web.test_server import get

pytestmark = [pytest.mark.root, pytest.mark.mininet, pytest.mark.long]  # run by make test-web

REPOSITORY = Path(__file__).parents[2]
WORKLOAD = ["--workload", "sizes", "--sizes", 1 << 18, "--iterations", 1_000_000]
FLOW_MBPS = 300
"""Thrice a link's rate."""


@contextmanager
def command(*arguments: object) -> Iterator[str]:
    """The address of the page that a command of netfold serves."""
    process = subprocess.Popen(
        [installed_command("netfold"), *map(str, arguments), "--listen", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "http://" in line, line + process.stderr.read()
        yield line.split()[-1]
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0


@contextmanager
def flow(system: Testbed, sender: str, receiver: str, folder: Path) -> Iterator[None]:
    """UDP that fills every link of its way."""
    net, address = system.net, str(system.net.addressing.hosts[receiver].ip)

    def process(host: str, *more: object) -> ProcessGroup:
        out = folder / f"{host}.json"
        line = [
            installed_command("netfold"),
            "host",
            "background",
            address,
            "--seconds",
            600,
            *more,
            "--out",
            out,
        ]
        return ProcessGroup(net, [HostTask(host, line, out)])

    with process(receiver, "--sink"), process(sender, "--rate-mbps", FLOW_MBPS):
        yield


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


@pytest.fixture
def system(recording: Path) -> Iterator[Testbed]:
    options = ("--record", str(recording), "--switch-restart-timeout", "2")
    with Testbed(
        target="softswitch", lanes=64, name="page", first_grpc_port=9900, controller_options=options
    ) as running:
        yield running


@pytest.fixture
def job(system: Testbed) -> SubmittedJob:
    return system.submit("training", WORKLOAD, scheme="panama", reroute="off")


def wait_for_level(page: Any, link: str, levels: Sequence[str]) -> None:
    page.wait_for_function(
        "([link, levels]) => levels.includes("
        'document.querySelector(`#fabric .direction[data-id="${link}"]`)?.dataset.level)',
        arg=[link, list(levels)],
    )


def wait_for_state(page: Any, node: str, state: str) -> None:
    page.wait_for_function(
        '([node, state]) => document.querySelector(`#fabric .node[data-id="${node}"]`)?.dataset.state === state',
        arg=[node, state],
    )


def wait_for_epoch(page: Any, epoch: int) -> None:
    page.click("#tab-jobs")
    page.wait_for_function(
        "epoch => document.querySelector('#epochs')?.innerText.includes(`epoch ${epoch},`)", arg=epoch
    )


def seek(page: Any, time_s: float) -> None:
    """By the address, as from a link to a moment."""
    page.evaluate("at => { location.hash = `t=${at}` }", time_s)


@needs_chromium
def test_the_page_shows_a_run_and_the_recording_shows_it_again(
    system: Testbed, job: SubmittedJob, recording: Path, tmp_path: Path
) -> None:
    root = next(t.root for t in job.plan.trees)
    with browser(tmp_path / "profile") as context:
        with (
            command("controller", "web", "--controller", system.controller.address) as address,
            open_page(context, address) as page,
        ):
            wait_for_state(page, root, "ready")
            wait_for_state(page, system.workers[0], "working")
            wait_for_level(page, f"{system.workers[0]}->leaf1", "12345")
            wait_for_level(page, "ps1->leaf1", "0")
            expect(page.locator(".trees path").first).to_be_attached()
            with flow(system, "ps1", "ps2", tmp_path):
                wait_for_level(page, "ps1->leaf1", "5")
                full_at = float(page.locator("body").get_attribute("data-drawn"))
            wait_for_level(page, "ps1->leaf1", "0")
            system.net.switches[root].kill()
            wait_for_state(page, root, "away")
            wait_for_epoch(page, 2)
            expect(page.locator("#epochs")).to_contain_text(root)
            page.wait_for_function(
                "() => /chunks: [1-9]/.test([...document.querySelectorAll('#charts figure')].map(f => f.ariaLabel))"
            )
            page.click("#why")
            page.wait_for_selector("#steps li")
            expect(page.locator("#answered")).to_contain_text("answered at ")
        with command("replay", recording) as address, open_page(context, address, dark=True) as page:
            expect(page.locator("#status")).to_have_text("recording")
            go_to_end(page)
            wait_for_state(page, root, "away")
            wait_for_epoch(page, 2)
            epochs = page.locator("#epochs li button")
            epochs.first.click()
            page.click("#tab-fabric")
            wait_for_state(page, root, "ready")
            seek(page, full_at)
            wait_for_level(page, "ps1->leaf1", "5")
            page.click("#play")
            wait_for_state(page, root, "away")


@needs_chromium
def test_the_page_shows_which_packets_of_a_sandbox_each_switch_has(system: Testbed, tmp_path: Path) -> None:
    job = system.submit("sandbox", workers=["h1", "h2", "h5"], scheme="panama", sandbox=True)
    tree = job.plan.trees[0]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"

    def send(host: str, value: int) -> None:
        """Wait for no RESULT: those of others are missing."""
        command = ["-m", "examples.gradient_by_hand", "sandbox", host, value, "--timeout", "0.01"]
        done = system.host(host).run(["env", f"PATH={path}", sys.executable, *command], cwd=REPOSITORY)
        assert "sent: " in done.stdout, done

    with (
        browser(tmp_path / "profile") as context,
        command("controller", "web", "--controller", system.controller.address) as address,
        open_page(context, address) as page,
    ):
        page.click("#tab-sums")
        leaf = page.locator('#sum-nodes .sum[data-switch="leaf1"]')
        root = page.locator(f'#sum-nodes .sum[data-switch="{tree.root}"]')
        expect(page.locator("#sum-answer")).to_contain_text("No packet has claimed it")
        page.get_by_label("every second").check()
        send("h1", 5)
        expect(leaf).to_have_attribute("data-status", "waiting")
        expect(leaf.locator('[data-kind="in"]')).to_contain_text("h1")
        expect(leaf.locator('[data-kind="missing"]')).to_contain_text("h2")
        expect(leaf).to_contain_text("sum 5 5 5")
        expect(page.locator("#sum-answer")).to_contain_text("leaf1 lacks h2")
        send("h2", 7)
        expect(leaf).to_have_attribute("data-status", "complete")
        expect(root.locator('[data-kind="missing"]')).to_contain_text("h5")
        send("h5", 30)
        expect(page.locator("#sum-answer")).to_contain_text("the sum is complete")
        expect(root).to_contain_text("sum 42 42 42")


def test_a_run_serves_its_page_and_leaves_its_recording(tmp_path: Path) -> None:
    fabric = tmp_path / "pair.yaml"
    fabric.write_text(PAIR)
    options = [str(fabric), "--epochs", "1", "--iterations", "1", "--no-ring", "--name", "page"]
    process = subprocess.Popen(
        [installed_command("netfold"), "run", "--web", "--web-port", "0", *options, "--out", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = next(line for line in process.stdout if "live page: " in line)
        answer, body = get(line.split()[-1], "/")
        assert answer.status == 200
        assert b"netfold" in body
        rest = process.stdout.read()
    finally:
        process.terminate()
        process.wait(timeout=60)
    assert process.returncode == 0, rest
    rows = [json.loads(line) for line in read_recording(tmp_path / "recording.jsonl")]
    assert rows[0]["name"] == "pair"
    running = {row["job"] for row in rows if row["kind"] == "event" and row["event"] == "job_running"}
    assert running == {"training", "bandwidth"}
