# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The file system of the store becomes read-only, or fails, while a controller leads, as when a shared disk goes away.
No change is made by half, callers get the reason, and jobs stay."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import struct
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from netfold.controller.service.store_files import verify
from tests.controller.test_processes import Operator, operating

SHUTDOWN = 0x8004587D
"""EXT4_IOC_SHUTDOWN of the kernel: from then on all reads and writes fail."""
WITHOUT_LOG = struct.pack("I", 2)
"""EXT4_GOING_FLAGS_NOLOGFLUSH: what is in the journal alone is lost, as with the disk."""

pytestmark = [pytest.mark.slow, pytest.mark.root]


def _command(*words: object) -> str:
    done = subprocess.run([str(w) for w in words], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


@contextlib.contextmanager
def _mounted(image: Path, folder: Path) -> Iterator[None]:
    try:
        _command("mount", "-o", "loop,errors=remount-ro", image, folder)
    except (subprocess.CalledProcessError, FileNotFoundError) as error:
        pytest.skip(f"SKIPPED: lost disks: no file can be mounted here ({error})")
    try:
        yield
    finally:
        _command("umount", folder)


def _become_read_only(folder: Path) -> None:
    device = Path(_command("findmnt", "--noheadings", "--output", "SOURCE", folder))
    Path(f"/sys/fs/ext4/{device.name}/trigger_fs_error").write_text("1\n")


def _fail(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_LOG)
    finally:
        os.close(descriptor)


def _run(folder: Path, scenario: Callable[[Operator], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with operating(folder) as operator:
            await scenario(operator)

    asyncio.run(whole())


@pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: lost disks: needs root to mount one")
@pytest.mark.parametrize("lose", [_become_read_only, _fail])
def test_changes_are_refused_as_a_whole_when_the_disk_is_lost(lose, tmp_path):
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    _command("mkfs.ext4", "-q", image)
    state = folder / "state.db"

    async def lost(operator: Operator) -> None:
        async with operator.controller("--state", str(state)) as leader:
            await operator.serves(leader)
            assert (await operator.run("job", "submit", "job.yaml", "--wait"))[0] == 0
            held = operator.switch.entries()
            lose(folder)
            for change in (("job", "cancel", "job"), ("fabric", "cordon", "h1")):
                code, _, errors = await operator.run(*change)
                assert (code, f"{state}: " in errors) == (4, True), errors
            code, out, _ = await operator.run("job", "show", "job", "--json")
            assert (code, json.loads(out)["state"]) == (0, "running"), "memory is as the store is"
            for read in (("fabric", "status"), ("controller", "status"), ("job", "explain", "job")):
                code, _, errors = await operator.run(*read)  # the kernel may still have what is read
                assert code == 0 or (code, f"{state}: " in errors) == (4, True), errors
            assert operator.switch.entries() == held
            assert leader.returncode is None

    async def found_again(operator: Operator) -> None:
        async with operator.controller("--state", str(state)) as leader:
            await operator.serves(leader)
            code, out, _ = await operator.run("job", "show", "job", "--json")
            # The new switch is empty, so the job is installed there again.
            assert (code, json.loads(out)["state"] in ("running", "installing")) == (0, True)
            assert (await operator.run("job", "cancel", "job"))[0] == 0

    with _mounted(image, folder):
        _run(tmp_path, lost)
    with _mounted(image, folder):
        assert verify(state).faults == ()
        _run(tmp_path, found_again)
