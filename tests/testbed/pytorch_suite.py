# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of torch.distributed, each rank in the namespaces of another host. Runs in .venv-torch.

    python pytorch_suite.py --backend netfold|gloo --pids PID,PID,... --out FILE [--source FILE] [--sample N --seed N]
        [NAME ...]

They are those of the installed package's `distributed_test`, or with `--source` of a file of PyTorch's sources, as far
as their ranks are processes. The tests choose what they run by the name of the backend. They read `gloo`; with
`--backend netfold` the groups that `init_process_group` makes of `gloo` are of netfold. FSDP's tests want GPUs, and
get processors: what they need of CUDA besides fails with Gloo, too.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

os.environ.update(BACKEND="gloo", OMP_NUM_THREADS="1", TORCH_DEVICE_BACKEND_AUTOLOAD="1")
os.environ.setdefault("WORLD_SIZE", "4")
os.environ.setdefault("TEMP_DIR", "")

import torch
import torch.distributed as dist
from torch.testing._internal import common_distributed, common_fsdp
from torch.testing._internal.common_distributed import MultiProcContinuousTest, MultiProcessTestCase
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

from netfold.testbed.network.namespaces import enter

FORK = torch.multiprocessing.get_context("fork")
PIDS: list[int] = []
BACKEND = "netfold"
DEVICES = int(os.environ["WORLD_SIZE"])
"""Ranks of the tests that want one for each device, as FSDP2's do."""
ON_PROCESSORS = (
    ("torch.cuda.device_count()", f"{DEVICES}"),
    ('"cuda"', '"cpu"'),
    (".cuda()", ".cpu()"),
    ("device_ids=[self.rank]", "device_ids=None"),
)
"""Replacements in a file of FSDP's tests, each as the text and the one for it."""
LIMIT_S = 400
"""For a test. PyTorch's own limit is 300 s, for those of one process each alone."""


def in_host(target: Callable[..., None], rank: int, *arguments: Any, **keywords: Any) -> None:
    enter(PIDS[rank % len(PIDS)])
    init = dist.init_process_group

    def init_process_group(backend: Any = None, *more: Any, **named: Any) -> None:
        init((backend or "gloo").replace("gloo", BACKEND), *more, **named)

    dist.init_process_group = dist.distributed_c10d.init_process_group = init_process_group
    target(rank, *arguments, **keywords)


def forked(*, target: Callable[..., None], args: tuple[Any, ...], **named: Any) -> Any:
    """Process of a rank, as the suites spawn it, without a second import of PyTorch."""
    return FORK.Process(target=in_host, args=(target, *args), **named)


def start_continuous(cls: Any, world_size: int) -> None:
    """Start the ranks of a class whose tests share them."""
    with tempfile.NamedTemporaryFile(delete=False) as file:
        cls.rdvz_file = file.name
    cls.task_queues = [FORK.Queue() for _ in range(world_size)]
    cls.completion_queues = [FORK.Queue() for _ in range(world_size)]
    queues = zip(cls.task_queues, cls.completion_queues, strict=True)
    cls.processes = [
        forked(target=cls._worker_loop, args=(rank, world_size, cls.rdvz_file, *pair))
        for rank, pair in enumerate(queues)
    ]
    for process in cls.processes:
        process.start()


def restart_continuous(cls: Any) -> None:
    """Give the next test other ranks. PyTorch would skip it."""
    for process in cls.processes:
        process.kill()
        process.join()
    cls._processes_spawned = cls.poison_pill = False


class InHosts(TestDistBackend, DistributedTest._DistTestBase):  # type: ignore[misc,name-defined]
    def setUp(self) -> None:
        super().setUp()
        self._start_processes(forked)


def tests_of(source: Path) -> Iterator[unittest.TestCase]:
    """Tests of the file whose ranks are processes."""
    MultiProcessTestCase._spawn_processes = lambda self: self._start_processes(forked)
    MultiProcContinuousTest._spawn_processes = classmethod(start_continuous)
    sys.path.insert(0, str(source.parent))
    module = sys.modules[source.stem] = ModuleType(source.stem)
    module.__file__ = str(source)
    exec(compile(text_of(source), source, "exec"), vars(module))
    for found in vars(module).values():
        if (
            isinstance(found, type)
            and issubclass(found, (MultiProcessTestCase, MultiProcContinuousTest))
            and found.__module__ == source.stem
        ):
            yield from map(found, unittest.TestLoader().getTestCaseNames(found))


def text_of(source: Path) -> str:
    text = source.read_text()
    if "fsdp" not in source.parts:
        return text
    torch.cpu.device_count = torch.accelerator.device_count = lambda: DEVICES
    common_fsdp.DEVICE_COUNT = DEVICES
    common_distributed.skip_if_lt_x_gpu = lambda *_, **__: lambda test: test
    for cuda, processor in ON_PROCESSORS:
        text = text.replace(cuda, processor)
    return text


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
        signal.alarm(LIMIT_S)

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        signal.alarm(0)
        super().stopTest(test)

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
        signal.alarm(0)
        self._note(test, self._exc_info_to_string(error, test))  # type: ignore[attr-defined]
        if isinstance(test, MultiProcContinuousTest):
            restart_continuous(type(test))

    addFailure = addError  # noqa: N815


def time_out(*_: object) -> None:
    raise TimeoutError(f"no end within {LIMIT_S} s")


def main() -> None:
    global BACKEND  # noqa: PLW0603 (forked processes read it)
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=("gloo", "netfold"), required=True)
    parser.add_argument("--pids", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--sample", type=int, help="how many tests, drawn by the seed")
    parser.add_argument("--seed", type=int, default=48)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    BACKEND = options.backend
    PIDS.extend(map(int, options.pids.split(",")))
    if options.source is not None:
        tests = [one for one in tests_of(options.source) if not options.names or one.id() in options.names]
    else:
        tests = [InHosts(name) for name in options.names or unittest.TestLoader().getTestCaseNames(InHosts)]
    if options.sample is not None and options.sample < len(tests):
        draw = random.Random(options.seed)
        drawn = {one.id() for one in draw.sample(tests, options.sample)}
        tests = [one for one in tests if one.id() in drawn]
    signal.signal(signal.SIGALRM, time_out)
    unittest.TestSuite(tests).run(Outcomes(options.out))


if __name__ == "__main__":
    main()
