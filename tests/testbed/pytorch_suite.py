# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, each rank in the namespaces of another host. Runs in .venv-torch.

    python pytorch_suite.py --backend netfold|gloo --pids PID,PID,... --out FILE [--source FILE] [NAME ...]

They are those of the installed package's `distributed_test`, or with `--source` of a file of PyTorch's sources. The
tests choose what they run by the name of the backend. They read `gloo`; with `--backend netfold` the groups that
`init_process_group` makes of `gloo` are of netfold.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import unittest
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import Any

os.environ.update(BACKEND="gloo", OMP_NUM_THREADS="1", TORCH_DEVICE_BACKEND_AUTOLOAD="1")
os.environ.setdefault("WORLD_SIZE", "4")
os.environ.setdefault("TEMP_DIR", "")

import torch
import torch.distributed as dist
from torch.testing._internal.common_distributed import MultiProcessTestCase
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

from netfold.testbed.network.namespaces import enter

FORKED = torch.multiprocessing.get_context("fork").Process
PIDS: list[int] = []
BACKEND = "netfold"


def in_host(target: Callable[..., None], rank: int, *arguments: Any, **keywords: Any) -> None:
    enter(PIDS[rank])
    init = dist.init_process_group

    def init_process_group(backend: Any = None, *more: Any, **named: Any) -> None:
        init(BACKEND if backend == "gloo" else backend, *more, **named)

    if BACKEND != "gloo":
        dist.init_process_group = init_process_group
    target(rank, *arguments, **keywords)


def forked(*, target: Callable[..., None], args: tuple[Any, ...], **named: Any) -> Any:
    """Process of a rank, as the suites spawn it, without a second import of PyTorch."""
    return FORKED(target=in_host, args=(target, *args), **named)


class InHosts(TestDistBackend, DistributedTest._DistTestBase):  # type: ignore[misc,name-defined]
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(forked)


def tests_of(source: Path) -> Iterator[unittest.TestCase]:
    """Tests of the file whose ranks are processes."""
    MultiProcessTestCase._spawn_processes = lambda self: self._start_processes(forked)
    spec = util.spec_from_file_location(source.stem, source)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[source.stem] = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for found in vars(module).values():
        if (
            isinstance(found, type)
            and issubclass(found, MultiProcessTestCase)
            and found.__module__ == source.stem
        ):
            yield from map(found, unittest.TestLoader().getTestCaseNames(found))


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
        name = test.id().removeprefix(f"{InHosts.__module__}.{InHosts.__qualname__}.")
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
    parser.add_argument("--source", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    BACKEND = options.backend
    PIDS.extend(map(int, options.pids.split(",")))
    if options.source is not None:
        tests = [one for one in tests_of(options.source) if not options.names or one.id() in options.names]
    else:
        tests = [InHosts(name) for name in options.names or unittest.TestLoader().getTestCaseNames(InHosts)]
    unittest.TestSuite(tests).run(Outcomes(options.out))


if __name__ == "__main__":
    main()
