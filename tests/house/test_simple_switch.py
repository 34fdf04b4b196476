# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch of the tests that does not come up says why: one that ends, and one that stays and never answers, as BMv2
does whose Thrift port is taken."""

from __future__ import annotations

import subprocess
from pathlib import Path

import grpc
import pytest

from tests import simple_switch
from tests.ports import free_port


@pytest.mark.parametrize("then", ["exit 3", "exec sleep 60"])
def test_what_a_switch_said_is_told_when_it_does_not_come_up(then: str, tmp_path: Path):
    log = tmp_path / "log"
    with log.open("wb") as output:
        program = ["sh", "-c", f"echo its port is taken >&2; echo; {then}"]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=output)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            grpc.insecure_channel(f"127.0.0.1:{free_port()}") as channel,
            pytest.raises(simple_switch.SwitchDied, match="its port is taken"),
        ):
            simple_switch.wait_until_ready(process, channel, log, start_s=0.5)
    finally:
        process.kill()
        process.wait()
