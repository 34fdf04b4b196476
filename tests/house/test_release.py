# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Products of `make wheels`: an index takes them, and the source archive holds all that a wheel needs."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.house.distributions import Wheels, build
from tests.house.imports import REPOSITORY

ELF_MACHINE_AARCH64 = 183
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    command = ["make", "-C", REPOSITORY, "wheels", f"DIST={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return build(tmp_path_factory.mktemp("checkout"), is_isolated=False)


def test_an_index_takes_every_wheel(release: Path):
    tags = {wheel.name.split("-")[0]: wheel.stem.split("-")[-1] for wheel in release.glob("*.whl")}
    assert set(tags) == {"netfold", "softswitch"}
    assert tags["netfold"].startswith("manylinux_")
    assert tags["softswitch"] == "any"


@pytest.mark.parametrize("name", ["netfold", "softswitch"])
def test_the_source_archive_holds_all_that_the_wheel_of_a_checkout_holds(
    release: Path, checkout: Wheels, name: str
):
    def files(wheel: Path) -> set[str]:
        return {
            file
            for file in zipfile.ZipFile(wheel).namelist()
            if ".dist-info/" not in file and not file.endswith("/")
        }

    assert len(list(release.glob(f"{name}-*.tar.gz"))) == 1
    assert files(next(release.glob(f"{name}-*.whl"))) == files(getattr(checkout, name))


@pytest.mark.skipif(
    shutil.which("aarch64-linux-gnu-gcc") is None, reason="SKIPPED: aarch64-linux-gnu-gcc is not on PATH"
)
def test_a_wheel_for_another_machine_holds_code_for_it(checkout: Wheels, tmp_path: Path):
    command = ["make", "-C", REPOSITORY, "wheels", "ARCH=aarch64", f"DIST={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = tmp_path.glob("netfold-*.whl")
    assert wheel.stem.endswith("_aarch64")
    assert "manylinux_" in wheel.stem
    libraries = [file for file in zipfile.ZipFile(wheel).namelist() if file.endswith(".so")]
    own = [file for file in zipfile.ZipFile(checkout.netfold).namelist() if file.endswith(".so")]
    assert len(libraries) == len(own) == 3
    for library in libraries:
        header = zipfile.ZipFile(wheel).read(library)[:20]
        assert struct.unpack("<4s14xH", header) == (b"\x7fELF", ELF_MACHINE_AARCH64)
