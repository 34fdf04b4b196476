# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""examples/roce.py, with virtual machines."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.testbed.test_examples import run

pytestmark = [pytest.mark.machines, pytest.mark.root]


@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="SKIPPED: needs qemu-system-x86_64")
def test_machines_add_up_through_the_leaves():
    machines = re.findall(
        r"^(h\d): 2 all-reduces, 0 wrong elements$", run("roce", timeout_s=1100), re.MULTILINE
    )
    assert machines == ["h1", "h2", "h5", "h6"]
