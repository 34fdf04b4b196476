# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the embedded switch share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from softswitch.build.native import default_cache_dir

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def cache_dir() -> Path:
    """Compiled programs are kept between runs: the key covers all that goes into them."""
    return default_cache_dir()


@pytest.fixture(params=["packet", "xdp", "dpdk"])
def kind(request: pytest.FixtureRequest) -> str:
    """The kind of a switch's ports on interfaces."""
    from testnet import dpdk_problem, xdp_problem  # noqa: PLC0415

    name: str = request.param
    if name == "xdp" and (problem := xdp_problem()):
        pytest.skip(f"SKIPPED: no AF_XDP: {problem}")
    if name == "dpdk" and (problem := dpdk_problem()):
        pytest.skip(f"SKIPPED: needs libdpdk-dev: {problem}")
    return name


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Root of a container may be refused network namespaces: tests that need them are skipped."""
    marked = [i for i in items if i.get_closest_marker("root") and Path(__file__).parent in i.path.parents]
    if not marked or os.geteuid() != 0:
        return
    tried = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    if tried.returncode == 0:
        return
    for item in marked:
        reason = f"SKIPPED: no network namespaces: {tried.stderr.strip()}"
        item.add_marker(pytest.mark.skip(reason=reason), append=False)
