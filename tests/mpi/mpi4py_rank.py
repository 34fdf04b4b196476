# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A rank of mpi4py's own test suite, with mpi4py's Python alone:

    python mpi4py_rank.py SUITE FOLDER OPTIONS...

`SUITE` is the folder of mpi4py's tests; the options are those of its main.py. A file in FOLDER, named for the rank,
has lines of the test's name, its outcome and its seconds. A test that does not end has no outcome."""

from __future__ import annotations

import importlib
import sys
import time
import unittest
from pathlib import Path
from typing import Any, TextIO


class Recorder(unittest.TextTestResult):
    """Writes each test's outcome as soon as it is known."""

    file: TextIO

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 (unittest's names)
        super().startTest(test)
        self.outcome = "passed"
        self.started = time.monotonic()
        self.file.write(test.id())
        self.file.flush()

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        super().stopTest(test)
        self.file.write(f" {self.outcome} {time.monotonic() - self.started:.2f}\n")
        self.file.flush()

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self.outcome = "failed"

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self.outcome = "failed"

    def addSubTest(self, test: unittest.TestCase, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        self.outcome = "failed" if err else self.outcome

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self.outcome = "skipped"


def main(suite: str, folder: str, *options: str) -> None:
    sys.path.insert(0, suite)
    rank = importlib.import_module("mpi4py.MPI").COMM_WORLD.rank
    Recorder.file = (Path(folder) / str(rank)).open("w", encoding="utf-8")
    runner = unittest.TextTestRunner(resultclass=Recorder, verbosity=0)
    importlib.import_module("main").main(module=None, argv=["main.py", *options], testRunner=runner)


if __name__ == "__main__":
    main(*sys.argv[1:])
