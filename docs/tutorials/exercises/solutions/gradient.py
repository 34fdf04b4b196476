# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One packet of a worker, field by field.

netfold network exec h1 -- python gradient.py sandbox h1 5
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys

from netfold.protocol.wire import Kind
from netfold.traffic.scapy_netfold import Netfold

CHUNK = 2
WAIT_S = 1.0


def main(name: str, host: str, value: int) -> None:
    shown = subprocess.run(
        ["netfold", "job", "show", name, "--json"], check=True, capture_output=True, timeout=120
    )
    job = json.loads(shown.stdout)
    fields = job["packets"]
    tree = fields["trees"][0]
    packet = Netfold(
        kind=Kind.GRADIENT,
        tree=tree["tree"],
        epoch=job["epoch"],
        round=CHUNK // tree["slots"],
        slot=CHUNK % tree["slots"],
        child=tree["children"][host],
        lane=[value] * fields["lanes"],
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("0.0.0.0", fields["udp_port"]))
        link.settimeout(WAIT_S)
        link.sendto(bytes(packet), (tree["root_address"], fields["udp_port"]))
        try:
            result = Netfold(link.recv(65535))
        except TimeoutError:
            print("no RESULT yet")
        else:
            print(
                f"RESULT of chunk {result.round * tree['slots'] + result.slot}: {result.lane[0]} in each lane"
            )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
