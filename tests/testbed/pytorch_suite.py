# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, each rank in the namespaces of another host. Runs in .venv-torch.

    python pytorch_suite.py --backend netfold|gloo --pids PID,PID,... --out FILE [NAME ...]

The tests choose what they run by the name of the backend. They read `gloo`; with `--backend netfold` the groups that
`init_process_group` makes of `gloo` are of netfold.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import unittest
from pathlib import Path
from typing import Any

os.environ.update(BACKEND="gloo", OMP_NUM_THREADS="1", TORCH_DEVICE_BACKEND_AUTOLOAD="1")
os.environ.setdefault("WORLD_SIZE", "4")
os.environ.setdefault("TEMP_DIR", "")

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

from netfold.testbed.network.namespaces import enter

FORKED = torch.multiprocessing.get_context("fork").Process
PIDS: list[int] = []
BACKEND = "netfold"


class InHosts(TestDistBackend, DistributedTest._DistTestBase):  # type: ignore[misc,name-defined]
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(FORKED)  # as the suite spawns them, without a second import of PyTorch

    @classmethod
    def _run(cls, rank: int, *arguments: Any, **keywords: Any) -> None:
        enter(PIDS[rank])
        init = dist.init_process_group

        def init_process_group(backend: Any = None, *more: Any, **named: Any) -> None:
            init(BACKEND if backend == "gloo" else backend, *more, **named)

        if BACKEND != "gloo":
            dist.init_process_group = init_process_group
        super()._run(rank, *arguments, **keywords)


class Outcomes(unittest.TestResult):
    """By name: passed, skipped and why, or what failed. Written after each test."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file
        self.found: dict[str, str] = {}
        self.started = 0.0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().startTest(test)
        self.started = time.monotonic()

    def _note(self, test: unittest.TestCase, outcome: str) -> None:
        name = test.id().rpartition(".")[2]
        self.found[name] = outcome
        self.file.write_text(json.dumps(self.found, indent=1))
        sys.stderr.write(f"{name} {time.monotonic() - self.started:.1f} s: {outcome[-300:]}\n")

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed")

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._note(test, f"skipped: {reason}")

    def addError(self, test: Any, error: Any) -> None:  # noqa: N802
        self._note(test, self._exc_info_to_string(error, test))  # type: ignore[attr-defined]

    addFailure = addError  # noqa: N815


def main() -> None:
    global BACKEND  # noqa: PLW0603 (forked processes read it)
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=("gloo", "netfold"), required=True)
    parser.add_argument("--pids", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    BACKEND = options.backend
    PIDS.extend(map(int, options.pids.split(",")))
    names = options.names or unittest.TestLoader().getTestCaseNames(InHosts)
    unittest.TestSuite(InHosts(name) for name in names).run(Outcomes(options.out))


if __name__ == "__main__":
    main()
