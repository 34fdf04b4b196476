# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""How many packets one worker process can source and sink, against a parameter server on loopback.

Three senders run side by side, each in a process of its own with the same packets:
  plain    one sendto and one recvfrom for each packet, packed and parsed in Python
  netfold  Worker.all_reduce: quantizing, window, timers, results written back
  ceiling  sendmmsg and recvmmsg of ready-made packets, nothing else
"packets/s" counts gradients sent, each of which also came back as a result: sourced and sunk.

    python benchmarks/host_pps.py [--lanes 64] [--seconds 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from netfold.traffic.congestion import Congestion
from netfold.traffic.membership.assignment import Assignment, TreePart
from netfold.traffic.membership.part import Alone
from netfold.traffic.packets.transport import Address
from netfold.traffic.packets.wire import Kind, Packet, packet_bytes
from netfold.traffic.server.server import ParameterServer
from netfold.traffic.worker.worker import Worker
from tests.traffic.batches import BATCH, BatchEndpoint, Inbox, Rows

SERVER, CLIENT, PORT = "127.88.0.100", "127.88.0.1", 61690
SLOTS = 4096


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lanes", type=int, nargs="+", default=[32, 64, 256])
    parser.add_argument("--seconds", type=float, default=2.0, help="for each sender")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [measure(lanes, options.seconds) for lanes in options.lanes]
    print_table(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def measure(lanes: int, seconds: float) -> dict[str, Any]:
    senders: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
        "plain": (reflect, send_plainly),
        "netfold": (serve, all_reduce),
        "ceiling": (reflect, send_batches),
    }
    row: dict[str, Any] = {"lanes": lanes, "packet_bytes": packet_bytes(lanes)}
    for name, (peer, sender) in senders.items():
        row[name] = side_by_side(peer, sender, lanes, seconds)
    row["netfold_over_plain"] = round(row["netfold"]["packets_s"] / row["plain"]["packets_s"], 1)
    row["netfold_over_ceiling"] = round(row["netfold"]["packets_s"] / row["ceiling"]["packets_s"], 2)
    return row


def side_by_side(
    peer: Callable[..., Any], sender: Callable[..., Any], lanes: int, seconds: float
) -> dict[str, float]:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    reflector = context.Process(target=peer, args=(lanes, ready), daemon=True)
    reflector.start()
    ready.wait(30)
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(sender(lanes, seconds)), daemon=True)
    process.start()
    try:
        if not here.poll(seconds * 5 + 60):
            raise SystemExit(f"{sender.__name__} did not finish")
        packets, wall, cpu = here.recv()
    finally:
        process.kill()
        reflector.kill()
        process.join()
        reflector.join()
    return {"packets_s": round(packets / wall), "packets_cpu_s": round(packets / cpu)}


def serve(lanes: int, ready: Any) -> None:
    server = ParameterServer(assignment(lanes, (0,)), SERVER)
    ready.set()
    server.serve()


def reflect(lanes: int, ready: Any) -> None:
    """Sends back what comes, as it is: the cheapest peer there can be."""
    endpoint = BatchEndpoint(Address(SERVER, PORT), Address(CLIENT, PORT))
    inbox = Inbox(BATCH, lanes)
    out = Rows(BATCH, lanes)
    ready.set()
    while True:
        count = endpoint.receive(inbox)
        out.records[:count] = inbox.records[:count]
        out.records["version_kind"][:count] |= np.uint8(Kind.RESULT)
        endpoint.send(out, count)


def all_reduce(lanes: int, seconds: float) -> tuple[int, float, float]:
    array = np.random.default_rng(1).standard_normal(lanes * 20_000, np.float32)
    with Worker(Alone(assignment(lanes)), CLIENT, congestion=Congestion.FIXED) as worker:
        worker.all_reduce(array.copy())
        wall, cpu, calls = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - wall < seconds:
            worker.all_reduce(array)
            calls += 1
        return calls * 20_000, time.perf_counter() - wall, time.process_time() - cpu


def send_plainly(lanes: int, seconds: float) -> tuple[int, float, float]:
    window, count = 64, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((CLIENT, PORT))
        sock.settimeout(5)
        lane = tuple(range(lanes))
        wall, cpu = time.perf_counter(), time.process_time()
        while time.perf_counter() - wall < seconds:
            for chunk in range(count, count + window):
                packet = Packet(Kind.GRADIENT, 1, 1, chunk // SLOTS, chunk % SLOTS, 0, lane)
                sock.sendto(packet.pack(), (SERVER, PORT))
            for _ in range(window):
                Packet.parse(sock.recv(2048))
            count += window
        return count, time.perf_counter() - wall, time.process_time() - cpu


def send_batches(lanes: int, seconds: float) -> tuple[int, float, float]:
    endpoint = BatchEndpoint(Address(CLIENT, PORT), Address(SERVER, PORT))
    out, inbox, count, under_way = Rows(BATCH, lanes), Inbox(BATCH, lanes), 0, 0
    wall, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - wall < seconds:
        if under_way <= 3 * BATCH:
            under_way += endpoint.send(out, BATCH)
        came = endpoint.receive(inbox)
        count += came
        under_way -= came
    return count, time.perf_counter() - wall, time.process_time() - cpu


def assignment(lanes: int, children: tuple[int, ...] = ()) -> Assignment:
    tree = TreePart(1, 1.0, SLOTS, SLOTS // 2, 0, SERVER, children)
    return Assignment("host_pps", 1, PORT, lanes, 0, 1, (tree,))


def print_table(rows: list[dict[str, Any]]) -> None:
    print(
        f"{'lanes':>5} {'sender':>8} {'packets/s':>10} {'per CPU-second':>15}   (sourced, and as many sunk)"
    )
    for row in rows:
        for name in ("plain", "netfold", "ceiling"):
            print(
                f"{row['lanes']:>5} {name:>8} {row[name]['packets_s']:>10,} {row[name]['packets_cpu_s']:>15,}"
            )
        print(
            f"{'':>5} netfold is {row['netfold_over_plain']} x plain, {row['netfold_over_ceiling']} x the ceiling"
        )


if __name__ == "__main__":
    main()
