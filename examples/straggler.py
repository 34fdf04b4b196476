# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Four workers, one of which pauses. With a quorum of three, the others wait for it no longer than 50 ms a sum.

Run `python examples/straggler.py [--out FILE]`.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import netfold
from netfold.testbed import Testbed, run_isolated

WORKERS = ["h1", "h2", "h5", "h6"]
CALLS, PAUSES_AT, PAUSE_S = 60, 10, 0.5


def work(host: str) -> None:
    """One of the workers; the last one pauses once."""
    with netfold.join("training") as worker:
        for call in range(CALLS):
            if host == WORKERS[-1] and call == PAUSES_AT:
                time.sleep(PAUSE_S)  # the others do not wait for it
            gradient = np.ones(1000, np.float32)
            started = time.monotonic()
            contributors = worker.all_reduce(gradient)
            print(contributors.minimum, gradient.min(), time.monotonic() - started, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("host", nargs="?", help="be this host's worker")
    parser.add_argument("--out", type=Path, help="the contributors and the time of each sum, JSON")
    options = parser.parse_args()
    if options.host:
        work(options.host)
        return
    run_isolated()
    with Testbed("leaf-spine-2x2") as testbed:
        testbed.submit("training", workers=WORKERS, scheme="switchml", quorum=3, quorum_deadline="50ms")
        command = [sys.executable, __file__]
        pipe = {"stdout": subprocess.PIPE, "text": True}
        members = [testbed.host(host).popen([*command, host], **pipe) for host in WORKERS]
        outputs = [member.communicate(timeout=120)[0] for member in members]
        rows = [tuple(map(float, line.split())) for line in outputs[0].splitlines()]
        partial = [row for row in rows if row[0] < len(WORKERS)]
        print(f"{len(rows)} sums; {len(partial)} without {WORKERS[-1]}, which paused {PAUSE_S:g} s")
        print(
            f"the longest took {max(row[2] for row in rows) * 1e3:.0f} ms; each has all that contributed: "
            f"{all(row[0] == row[1] for row in rows)}"
        )
        if options.out:
            sums = [{"contributors": int(row[0]), "ms": round(row[2] * 1e3, 2)} for row in rows]
            options.out.write_text(json.dumps(sums, indent=1) + "\n")


if __name__ == "__main__":
    main()
