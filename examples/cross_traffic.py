# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job alone, and beside a UDP flow between the same leaves: its rate, and whether the controller moved it.

Run `python examples/cross_traffic.py`.
"""

import sys

from netfold.testbed import Testbed, run_isolated

WORKERS = ["h1", "h5"]
SUMS = ["--workload", "sizes", "--sizes", 1 << 20, "--iterations", 30]


def main() -> None:
    run_isolated()
    with Testbed("leaf-spine-2x2") as testbed:
        sender, receiver = testbed.host("h4"), testbed.host("h8")
        flow = [sys.executable, *f"-m netfold host background {testbed.address('h8')} --seconds 120".split()]
        for name, mbps in (("alone", 0), ("beside", 60)):
            if mbps:
                receiver.popen([*flow, "--sink"])
                sender.popen([*flow, "--rate-mbps", mbps])
            job = testbed.submit(name, SUMS, WORKERS, scheme="switchml", rate=90)
            rate = min(result["algbw_mbps"] for result in job.result().values())
            print(f"{name}: {rate:.0f} Mbit/s, job epoch {job.status().epoch}")


if __name__ == "__main__":
    main()
