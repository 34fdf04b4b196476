# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A worker, in its host, that reduces small arrays until a result says stop, and writes down each: a line of JSON.

Every element but the first is 2^NUMBER, so a sum names its contributors. The first asks all to stop: when the file STOP
is there, or after so many calls of one that is late in them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path

import numpy as np

from netfold.traffic.errors import StragglerError, WorkersLeftError
from netfold.traffic.membership.membership import ControllerMembership
from netfold.traffic.numerics import ReduceOp
from netfold.traffic.worker.worker import Worker

ELEMENTS = 3000
MOST_CALLS = 5000
EACH_S = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("controller")
    parser.add_argument("job")
    parser.add_argument("host")
    parser.add_argument("number", type=int)
    parser.add_argument("out", type=Path)
    parser.add_argument("stop", type=Path)
    parser.add_argument("--op", type=ReduceOp, default=ReduceOp.SUM)
    parser.add_argument("--late-calls", type=int, default=0, help="before each third of so many it pauses")
    parser.add_argument("--late", type=float, default=0.0, help="for so many seconds")
    parser.add_argument("--calls", type=int, default=MOST_CALLS, help="leaves after so many")
    told = parser.parse_args()
    member = ControllerMembership(told.controller, told.job, told.host)
    straggled, error = 0, ""
    with Worker(member) as worker, told.out.with_suffix(".progress").open("w") as progress:
        member.wait(60)
        for turn in range(told.calls):
            time.sleep(told.late if turn % 3 == 2 and turn < told.late_calls else EACH_S)
            array = np.full(ELEMENTS, 2.0**told.number, np.float32)
            array[0] = told.stop.exists() or (told.late_calls > 0 and turn >= told.late_calls)
            try:
                contributors = worker.all_reduce(array, 40, told.op)
            except StragglerError:
                straggled += 1
                continue
            except WorkersLeftError as left:
                error = str(left)
                break
            row = {
                "digest": hashlib.sha256(array.tobytes()).hexdigest(),
                "values": np.unique(array[1:]).tolist(),
                "least": contributors.minimum if contributors is not None else worker.workers,
                "most": contributors.maximum if contributors is not None else worker.workers,
            }
            progress.write(json.dumps(row) + "\n")
            progress.flush()
            if array[0]:
                break
        told.out.write_text(json.dumps({"straggled": straggled, "late": worker.stats.late, "error": error}))


if __name__ == "__main__":
    main()
