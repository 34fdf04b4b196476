# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of a PyTorch program that failed in a host: its own, not torchrun's many words about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from netfold.testbed.torchrun import first_error

TORCHRUN = """\
[W1122 05:07:29 socket.cpp:207] [c10d] The hostname of the client socket cannot be retrieved. err=-3
[rank1]: Traceback (most recent call last):
[rank1]:   File "rank.py", line 112, in main
[rank1]: torch.distributed.DistBackendError: netfold: rank 0 says: job t: no room
Traceback (most recent call last):
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
"""

CHILD_FAILED = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: "  # as Python prints it

RANK_AFTER_TORCHRUN = f"""\
Traceback (most recent call last):
  File "torch/distributed/run.py", line 900, in main
{CHILD_FAILED}
============================================================
rank.py FAILED
------------------------------------------------------------
[rank0]: RuntimeError: Connection closed by peer [10.1.0.2]:5123
"""

KILLED = f"""\
{CHILD_FAILED}
============================================================
rank.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
  rank      : 1 (local_rank: 0)
  exitcode  : -9 (pid: 4123)
  traceback : Signal 9 (SIGKILL) received by PID 4123
============================================================
"""


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            TORCHRUN,
            "[rank1]: torch.distributed.DistBackendError: netfold: rank 0 says: job t: no room",
        ),
        ("rank.py: error: unrecognized arguments: --x\n", "rank.py: error: unrecognized arguments: --x"),
        (RANK_AFTER_TORCHRUN, "[rank0]: RuntimeError: Connection closed by peer [10.1.0.2]:5123"),
        (KILLED, "exitcode: -9 (pid: 4123)"),
        ("", ""),
    ],
)
def test_the_first_error_is_told(tmp_path: Path, log: str, said: str):
    file = tmp_path / "log"
    file.write_text(log)
    assert first_error(file) == said
