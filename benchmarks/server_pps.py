# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many packets a parameter server takes and answers in a second of processor time: traffic/engine/root.c,
beside the same in numpy (tests/traffic/numpy_server.py), on loopback.

A worker in a process of its own adds up a gradient through each. "packets/s" is what the worker gets done,
"per CPU-second" the gradients that the server took, and as many results, by its own processor time.

    python -m benchmarks.server_pps [--lanes 64 256] [--seconds 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import threading
from pathlib import Path
from typing import Any

from benchmarks.host_pps import CLIENT, PORT, SERVER, all_reduce, assignment
from netfold.traffic.packets.transport import Address
from netfold.traffic.server.server import ParameterServer
from tests.traffic.numpy_server import NumpyServer

SERVERS = {"numpy": NumpyServer, "engine": ParameterServer}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lanes", type=int, nargs="+", default=[32, 64, 256])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each server")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [measure(lanes, options.seconds) for lanes in options.lanes]
    print(f"{'lanes':>5} {'server':>8} {'packets/s':>10} {'per CPU-second':>15}")
    for row in rows:
        for name in SERVERS:
            print(
                f"{row['lanes']:>5} {name:>8} {row[name]['packets_s']:>10,} {row[name]['packets_cpu_s']:>15,}"
            )
        print(f"{'':>5} the engine takes {row['engine_over_numpy']} x as many per CPU-second")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def measure(lanes: int, seconds: float) -> dict[str, Any]:
    row: dict[str, Any] = {"lanes": lanes}
    for name in SERVERS:
        context = multiprocessing.get_context("spawn")
        ready, over = context.Event(), context.Event()
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=serve, args=(name, lanes, ready, over, there), daemon=True)
        process.start()
        try:
            ready.wait(60)
            packets, wall, _ = all_reduce(lanes, seconds)
            over.set()
            taken, cpu = here.recv()
        finally:
            process.join(30)
        row[name] = {"packets_s": round(packets / wall), "packets_cpu_s": round(taken / cpu)}
    row["engine_over_numpy"] = round(row["engine"]["packets_cpu_s"] / row["numpy"]["packets_cpu_s"], 1)
    return row


def serve(name: str, lanes: int, ready: Any, over: Any, answer: Any) -> None:
    server = SERVERS[name](assignment(lanes, (0,)), SERVER, [Address(CLIENT, PORT)])
    serving = threading.Thread(target=server.serve)
    serving.start()
    before = resource.getrusage(resource.RUSAGE_SELF)
    ready.set()
    over.wait(600)
    after = resource.getrusage(resource.RUSAGE_SELF)
    server.stop()
    serving.join()
    server.close()
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer.send((sum(server.counts().values()), cpu))


if __name__ == "__main__":
    main()
