# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The distributions with the versions that they allow, from the index: the lowest, the locked and the newest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.house.distributions import Installed, Wheels, build
from tests.house.imports import REPOSITORY

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

INSTALL_S = 1500
OWN = ("netfold", "softswitch")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Wheels:
    return build(tmp_path_factory.mktemp("released"), is_isolated=True)


def lowest(extras: tuple[str, ...]) -> list[str]:
    """Pins of the lower bounds of netfold and its extras, with those of softswitch where `switch` is one of them."""
    found: dict[str, str] = {}
    files = ["pyproject.toml", *(["softswitch/pyproject.toml"] if "switch" in extras else [])]
    for file in files:
        project = tomllib.loads((REPOSITORY / file).read_text())["project"]
        texts = list(project["dependencies"])
        for extra in extras:
            texts += project.get("optional-dependencies", {}).get(extra, [])
        for text in texts:
            bound = re.match(r"([A-Za-z0-9._-]+)>=([0-9.]+)", text)
            if bound and bound[1] not in OWN:
                known = found.get(bound[1], "0")
                found[bound[1]] = max(known, bound[2], key=lambda v: [int(n) for n in v.split(".")])
    return [
        f"{name}=={version}" + (".*" if version.count(".") < 2 else "") for name, version in found.items()
    ]


def install(wheels: Wheels, folder: Path, what: str, constraints: list[str]) -> Installed:
    """`what`: an extra in brackets, or ""."""
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=INSTALL_S)
    bounds = folder / "constraints.txt"
    bounds.write_text("\n".join(constraints) + "\n")
    python = folder / "venv" / "bin" / "python"
    options = ["-q", "--constraint", bounds, "--find-links", wheels.netfold.parent]
    command = [python, "-m", "pip", "install", *options, f"{wheels.netfold}{what}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    assert done.returncode == 0, done.stderr
    return Installed(python, folder)


EVERYTHING = ("controller", "switch", "testbed", "sim", "web")
LOCK = (REPOSITORY / "requirements.lock").read_text().splitlines()


@pytest.mark.parametrize("constraints", [lowest(EVERYTHING), LOCK, []], ids=["lowest", "lock", "newest"])
def test_commands_work_with_the_versions_that_are_allowed(
    released: Wheels, tmp_path: Path, constraints: list[str]
):
    clean = install(released, tmp_path, "[all]", constraints)
    for arguments in (
        ["doctor"],
        ["reproduce", "--help"],
        ["job", "submit", "--help"],
        ["fabric", "check", "single"],
    ):
        done = clean.run(clean.netfold, *arguments)
        assert done.returncode == 0, done.stderr
    for scheme in ("grid", "packing", "auto"):
        done = clean.run(clean.netfold, "plan", "grid-fig1", "-s", scheme, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["rate"] == pytest.approx(3, rel=0.03)
    done = clean.run(clean.softswitch, "--version")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("constraints", [lowest(()), []], ids=["lowest", "newest"])
def test_a_worker_needs_no_more_than_the_base(released: Wheels, tmp_path: Path, constraints: list[str]):
    clean = install(released, tmp_path, "", constraints)
    code = "import netfold, netfold.traffic.membership.membership, netfold.protocol.netfold_pb2_grpc; print('ok')"
    done = clean.run(clean.python, "-W", "error", "-c", code)
    assert done.stdout == "ok\n", done.stderr
    done = clean.run(clean.netfold, "host", "ps", "--help")
    assert done.returncode == 0, done.stderr
