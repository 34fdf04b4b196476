# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The same controller on switches that are not fakes: the embedded one, and BMv2 where it is installed."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.switches.admission import Kind
from controller.switches.session import SwitchAwayError
from tests.controller.deployment import Deployment
from topologies.generators import single_switch

SPEC = "name: {}\nworkers: {}\nscheme: {}\nrate: 20\n"


@contextlib.contextmanager
def _process(target: str, port: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    address = f"127.0.0.1:{port}"
    if target == "softswitch":
        start = "from cli.main import main; main()"
        command = [
            sys.executable,
            "-c",
            start,
            "softswitch",
            "--grpc-server-addr",
            address,
            "--device-id",
            "1",
        ]
    else:
        command = ["simple_switch_grpc", "--no-p4", "--device-id", "1", "--"]
        command += ["--grpc-server-addr", address, "--cpu-port", "510"]
    with (folder / "switch.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(
    params=["softswitch", pytest.param("bmv2", marks=pytest.mark.bmv2)],
)
def target(request) -> str:
    needed = {"softswitch": "gcc", "bmv2": "simple_switch_grpc"}[request.param]
    if shutil.which(needed) is None:
        pytest.skip(f"{needed} is not on PATH")
    return request.param


async def _repaired(deployment: Deployment) -> int:
    """After one more audit."""
    health = deployment.controller.fleet.health("s1")
    seen = health.audits
    await deployment.until(lambda: health.audits > seen + 1, "audited")
    return health.repaired


async def _slot(deployment: Deployment, slot: int):
    """A READ; the controller may have reconnected just now."""
    async with asyncio.timeout(10):
        while True:
            with contextlib.suppress(SwitchAwayError):
                return await deployment.controller.links.manage("s1", Kind.READ, slot)
            await deployment.controller.pulse.wait()


def test_install_audit_take_over_and_restart(target, tmp_path):
    async def scenario():
        deployment = Deployment(single_switch(4, parameter_servers=1), tmp_path, audit_s=0.2)
        port = deployment.switches["s1"].port = _free_port()
        with _process(target, port, tmp_path):
            deployment.start()
            await deployment.settled()
            await deployment.controller.submit(SPEC.format("a", "[h1, h2, h3]", "switchml"), queue=False)
            await deployment.controller.submit(SPEC.format("b", "[h3, h4]", "none"), queue=False)
            await deployment.settled()
            assert await _repaired(deployment) == 0, "what was written is what is read back"
            view = await _slot(deployment, 3)
            assert (view.epoch, view.bitmap, view.slot) == (0, 0, 3)
            await deployment.kill()

            deployment.start()
            await deployment.settled()
            assert await _repaired(deployment) == 0, "nothing had to be written again"
            assert deployment.controller.book.get("a").epoch == 1
            deployment.controller.cancel("b")
            await deployment.settled()
            assert await _repaired(deployment) == 0
        with _process(target, port, tmp_path):
            await deployment.until(lambda: deployment.controller.book.get("a").epoch == 2, "a new epoch")
            await deployment.settled()
            assert await _repaired(deployment) == 0
            assert len(await deployment.controller.fleet.sessions["s1"].read_counters([0, 33])) == 2
        await deployment.kill()

    asyncio.run(scenario())


def test_another_stores_switch_is_emptied_and_taken_over(target, tmp_path):
    async def scenario():
        port = _free_port()
        with _process(target, port, tmp_path):
            for folder in ("first", "second"):
                (tmp_path / folder).mkdir()
                deployment = Deployment(single_switch(4), tmp_path / folder, audit_s=0.2)
                deployment.switches["s1"].port = port
                deployment.start()
                await deployment.settled()
                await deployment.controller.submit(SPEC.format(folder, "[h1, h2]", "switchml"), queue=False)
                await deployment.settled()
                assert await _repaired(deployment) == 0
                reset = await deployment.controller.links.manage("s1", Kind.RESET, 5)
                assert (reset.epoch, reset.slot) == (0, 5)
                await deployment.kill()

    asyncio.run(scenario())
