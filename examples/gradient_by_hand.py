# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One packet of a worker, made by hand with scapy; prints the RESULT when all workers of the job have sent theirs.

    netfold network exec h1 -- python -m examples.gradient_by_hand JOB h1 40

The job is a sandbox (docs/tutorials/a-gradient-by-hand.md): elsewhere packets by hand take the place of a worker's.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess

from netfold.traffic.scapy_netfold import Netfold, gradient


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("job")
    parser.add_argument("host", help="the worker whose packet it is; run this in its namespace")
    parser.add_argument("value", type=int, help="of all lanes")
    parser.add_argument("--chunk", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds to wait for the RESULT")
    options = parser.parse_args()

    shown = subprocess.run(
        ["netfold", "job", "show", options.job, "--json"], check=True, capture_output=True, timeout=120
    )
    job = json.loads(shown.stdout)
    packets, tree = job["packets"], job["packets"]["trees"][0]
    packet = gradient(
        tree["tree"], tree["children"][options.host], options.chunk, tree["slots"], job["epoch"],
        [options.value] * packets["lanes"],
    )  # fmt: skip
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("0.0.0.0", packets["udp_port"]))  # the port authenticates the sender
        link.settimeout(options.timeout)
        link.sendto(bytes(packet), (tree["root_address"], packets["udp_port"]))
        print(f"sent: {packet.summary()}")
        result = Netfold(link.recv(65535))
    print(f"received: {result.summary()} lanes {result.lane[:4]} ...")


if __name__ == "__main__":
    main()
