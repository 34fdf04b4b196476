# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker of a trial, in its host: reduces arrays until the job has made so many calls, and writes each down, a line
of JSON before the call and one after it. At the end it writes why it ended."""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import time
from dataclasses import asdict
from pathlib import Path
from typing import TextIO

from netfold.traffic.errors import ControllerUnreachableError, StragglerError, TrafficError
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.worker.worker import Worker
from tests.testbed.trial.sums import SALTS, contents_of, contribution

TIMEOUT_S = 300.0
"""The limit of each wait: longer than any fault of a trial, on a loaded machine, too."""

PAUSE_S = 0.02
LATE_EVERY, LATE_S = 25, 0.6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("controller")
    parser.add_argument("job")
    parser.add_argument("host")
    parser.add_argument("--index", type=int, required=True, help="of the worker in its job")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--calls", type=int, required=True, help="of the job, after which it leaves")
    parser.add_argument("--late", action="store_true", help="it pauses now and then")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    error: TrafficError | None = None
    with options.out.with_suffix(".calls").open("w") as calls:
        try:
            with _worker(options.controller, options.job, options.host) as worker:
                _reduce(worker, calls, options)
        except TrafficError as found:
            error = found
    kind = "" if error is None else type(error).__name__
    _write_whole(options.out, json.dumps({"error": kind, "text": str(error or "")}))


def _worker(controller: str, job: str, host: str) -> Worker:
    """One that has its assignment. A controller that is away when the worker starts is tried again. Raises
    TrafficError."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        member = ControllerMembership(controller, job, host)
        worker = Worker(member)
        try:
            member.wait(TIMEOUT_S)
        except ControllerUnreachableError:
            worker.close()
            if time.monotonic() > deadline:
                raise
        except BaseException:
            worker.close()
            raise
        else:
            return worker


def _reduce(worker: Worker, calls: TextIO, options: argparse.Namespace) -> None:
    """Raises TrafficError."""
    chosen, turn = random.Random(options.seed), 0
    while worker.stats.next_call < options.calls:
        turn += 1
        time.sleep(LATE_S if options.late and turn % LATE_EVERY == 0 else PAUSE_S)
        salt = chosen.randrange(SALTS)
        _write(calls, {"salt": salt})
        array = contribution(options.index, salt)
        try:
            worker.all_reduce(array, TIMEOUT_S)
        except StragglerError:
            continue
        made = worker._engine.call_log(1)[0]
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        row = {"call": worker.stats.next_call - 1, "epoch": made.epoch, "digest": digest}
        _write(calls, row | {"contents": asdict(contents_of(array))})


def _write_whole(out: Path, text: str) -> None:
    """The file is there with all of its text or not at all, also when the process is killed meanwhile."""
    draft = out.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(out)


def _write(file: TextIO, row: dict[str, object]) -> None:
    file.write(json.dumps(row) + "\n")
    file.flush()


if __name__ == "__main__":
    main()
