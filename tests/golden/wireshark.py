# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Fields that Wireshark shows of captured packets, with netfold's dissector."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from netfold.p4src.tools.p4build import REPOSITORY

DISSECTOR = REPOSITORY / "protocol/wireshark/netfold.lua"
WITHOUT_RIGHTS = ("unshare", "--user")


def dissect(capture: Path, *options: str) -> list[dict[str, Any]]:
    """The layers of each packet, as tshark shows them."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed (apt-get install tshark)")
    # Wireshark 4.4 runs no script of root's.
    is_hidden = os.geteuid() == 0 and subprocess.run([*WITHOUT_RIGHTS, "true"], check=False).returncode == 0
    command = [
        "tshark",
        "-X",
        f"lua_script:{DISSECTOR}",
        "-r",
        str(capture),
        "-T",
        "json",
        "--no-duplicate-keys",
    ]
    done = subprocess.run(
        [*(WITHOUT_RIGHTS if is_hidden else ()), *command, *options],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Lua" not in done.stderr, done.stderr
    return [packet["_source"]["layers"] for packet in json.loads(done.stdout)]
