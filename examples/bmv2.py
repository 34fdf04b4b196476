# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A job on p4lang's BMv2 in Mininet: `simple_switch_grpc` runs the same P4 program. Mininet's objects are there, too.

Run `python examples/bmv2.py`. It needs simple_switch_grpc on PATH.
"""

from netfold.testbed import NetworkError, Testbed, run_isolated


def main() -> None:
    run_isolated()
    try:
        testbed = Testbed("single", target="bmv2")
        with testbed:
            print(testbed.mininet["h1"].cmd(f"ping -c1 {testbed.address('h2')}").splitlines()[-2])
            job = testbed.submit("sums", ["--workload", "sizes", "--sizes", 1 << 16], ["h1", "h2", "h3"])
            for host, result in job.result().items():
                print(f"{host}: {result['algbw_mbps']:.1f} Mbit/s, {result['wrong_elements']} wrong elements")
    except NetworkError as error:
        print(f"skipped: {error}")


if __name__ == "__main__":
    main()
