# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What is told of a PyTorch program that failed in a host: the error, not torchrun's many words about it."""

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


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (
            TORCHRUN,
            "[rank1]: torch.distributed.DistBackendError: netfold: rank 0 says: job t: no room",
        ),
        ("rank.py: error: unrecognized arguments: --x\n", "rank.py: error: unrecognized arguments: --x"),
        ("", ""),
    ],
)
def test_the_first_error_is_told(tmp_path: Path, log: str, said: str):
    file = tmp_path / "log"
    file.write_text(log)
    assert first_error(file) == said
