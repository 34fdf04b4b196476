# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A switch process that does not start is reported with the end of its log: one that ends, and one that never answers,
as a BMv2 whose Thrift port is taken."""

from __future__ import annotations

import subprocess
from pathlib import Path

import grpc
import pytest
from softswitch.testing import simple_switch
from softswitch.testing.ports import free_port


@pytest.mark.parametrize("then", ["exit 3", "exec sleep 60"])
def test_a_failed_start_is_reported_with_the_end_of_the_log(then: str, tmp_path: Path):
    log = tmp_path / "log"
    with log.open("wb") as output:
        program = ["sh", "-c", f"echo its port is taken >&2; echo; {then}"]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=output)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            grpc.insecure_channel(f"127.0.0.1:{free_port()}") as channel,
            pytest.raises(simple_switch.SwitchDiedError, match="its port is taken"),
        ):
            simple_switch.wait_until_ready(process, channel, log, start_s=0.5)
    finally:
        process.kill()
        process.wait()
