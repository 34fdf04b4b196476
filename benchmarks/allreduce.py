# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""All-reduce through switches, beside a TCP ring over the same links, in the columns of nccl-tests.

For each number of workers and lanes a leaf is brought up (or several, and a spine above them), a job admitted,
and arrays of each size are reduced and checked element by element; then the same as a ring. Needs root.

    python -m benchmarks.allreduce [--workers 2 4 8] [--bytes 256K,4M] [--rate 100] [--numerics block half]
        [--lanes 32 64 256] [--leaves 1] [--json FILE]

size (bytes), count and type of the elements, redop; time: mean of a call at the slowest worker, us; algbw
= size / time, busbw = algbw * 2 (n - 1) / n, GB/s; #wrong. "of link" is algbw over the rate at which the
link carries payload in float32.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from netfold.testbed.deployment import Deployment, Results, Setup
from netfold.topologies.network.builder import Network
from netfold.topologies.network.faults import Faults
from netfold.traffic.numerics import DTYPES
from netfold.traffic.packets.wire import FRAME_OVERHEAD_BYTES, packet_bytes

RING_PORT = 29600


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--bytes", default="256K,4M", help="sizes, as in 64K,1M,16M")
    parser.add_argument("--type", default="float32", choices=[str(dtype) for dtype in DTYPES])
    parser.add_argument("--rate", type=float, default=100.0, help="of each link, Mbit/s")
    parser.add_argument("--lanes", type=int, nargs="+", default=[256], choices=(32, 64, 256))
    parser.add_argument("--leaves", type=int, default=1, help="with a spine above them if they are several")
    parser.add_argument(
        "--iterations",
        type=int,
        default=5,
        help="of each size, at least; smaller arrays: up to 200, of 8 MiB in all",
    )
    parser.add_argument("--target", default="softswitch", help="softswitch or bmv2")
    parser.add_argument(
        "--loss", type=float, default=0.0, help="of packets, in each direction of each link, 0 to 1"
    )
    parser.add_argument(
        "--queue", type=int, default=64, help="of each switch port: room for so many packets of 256 lanes"
    )
    parser.add_argument(
        "--slots",
        type=int,
        default=512,
        help="of the tree, of 256 lanes: as many bytes at each lane count; the window is half",
    )
    parser.add_argument("--congestion", default="panama", choices=("panama", "atp", "fixed"))
    parser.add_argument(
        "--numerics",
        nargs="+",
        default=["auto"],
        choices=("auto", "block", "half", "float32", "integer"),
        help="one run for each",
    )
    parser.add_argument("--no-ring", dest="ring", action="store_false")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    reports = []
    for workers, lanes, numerics in product(options.workers, options.lanes, options.numerics):
        reports.append(measure(workers, lanes, numerics, options))
        print_report(reports[-1])
        if options.json:
            options.json.write_text(json.dumps(reports, indent=1) + "\n")
    print_summary(reports)


def fabric_of(workers: int, lanes: int, options: argparse.Namespace) -> str:
    """A spec. Raises SystemExit if leaves cannot be alike."""
    # Ports count packets. A switch's buffer is bytes: so many small packets more fit into it.
    queue = round(options.queue * frame_bytes(256) / frame_bytes(lanes))
    if options.leaves == 1:
        shape = f"single_switch: {{hosts: {workers}, "
    elif workers % options.leaves == 0:
        shape = f"leaf_spine: {{leaves: {options.leaves}, spines: 1, hosts_per_leaf: {workers // options.leaves}, "
        shape += f"fabric_rate: {workers // options.leaves * options.rate}, "
    else:
        raise SystemExit(f"{workers} workers are not the same number on each of {options.leaves} leaves")
    shape += f"parameter_servers: 0, rate: {options.rate}, queue: {queue}}}"
    return f"name: workers-{workers}\ngenerate:\n  {shape}\n"


def measure(workers: int, lanes: int, numerics: str, options: argparse.Namespace) -> dict[str, Any]:
    flags: list[object] = ["--workload", "sizes", "--bytes", options.bytes, "--dtype", options.type]
    flags += ["--iterations", options.iterations, "--volume", "8M", "--timeout", 120]
    with tempfile.TemporaryDirectory() as folder:
        fabric = Path(folder) / "fabric.yaml"
        fabric.write_text(fabric_of(workers, lanes, options))
        setup = Setup(str(fabric), options.target, lanes)
        with Deployment(setup, tell=lambda text: print("#", text, flush=True)) as system:
            spoil(system.net, options.loss)
            room = min(switch.slots for switch in system.fabric.switches)
            # Hosts and switches share the processors of one machine, so a round trip takes many milliseconds.
            order: dict[str, Any] = {
                "scheme": "switchml",
                "slots": min(room, options.slots * 256 // lanes),
                "numerics": {"mode": numerics},
            }
            job = system.start_job("allreduce", [*flags, "--congestion", options.congestion], **order)
            netfold = system.finish(job, 600.0)
            switch_cpu_s = processor_seconds(system.net)
            ring: Results = {}
            if options.ring:
                group, _ = system.start_ring("allreduce", flags, RING_PORT)
                ring = group.wait(600.0, system.check)
    return {
        "workers": workers,
        "numerics": numerics,
        "lanes": lanes,
        "leaves": options.leaves,
        "rate_mbps": options.rate,
        "loss": options.loss,
        "target": options.target,
        "payload_mbps": payload_rate(options.rate, lanes),
        "switch_cpu_s": switch_cpu_s,
        "netfold": summary(netfold),
        "ring": summary(ring) if ring else None,
    }


def spoil(net: Network, loss: float) -> None:
    """Lets every link lose packets, in both directions."""
    if loss:
        for seed, link in enumerate(net.fabric.links):
            net.set_faults(link.a, link.b, Faults(loss=loss, seed=2 * seed + 1))
            net.set_faults(link.b, link.a, Faults(loss=loss, seed=2 * seed + 2))


def processor_seconds(net: Network) -> float:
    """What the switches' processes have used up to now, user and system."""
    ticks = 0
    for switch in net.switches.values():
        fields = Path(f"/proc/{switch.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return round(ticks / os.sysconf("SC_CLK_TCK"), 2)


def frame_bytes(lanes: int) -> int:
    """Of a packet, as the fabric counts."""
    return packet_bytes(lanes) + FRAME_OVERHEAD_BYTES


def payload_rate(rate_mbps: float, lanes: int) -> float:
    """Mbit/s of lanes that a link of this rate carries."""
    return rate_mbps * 4 * lanes / frame_bytes(lanes)


def summary(results: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """An all-reduce is as slow as its slowest worker."""
    rows = []
    for lines in zip(*(r["sizes"] for r in results.values()), strict=True):
        slowest = dict(max(lines, key=lambda line: line["time_us"]))
        slowest["wrong"] = sum(line["wrong"] for line in lines)
        rows.append(slowest)
    return {
        "rows": rows,
        "identical": len({r["digest"] for r in results.values()}) == 1,
        "flows": next(iter(results.values()))["flows"],
        "retransmits": sum(r["retransmits"] for r in results.values()),
        "cpu_s_per_gib": round(sum(r["allreduce_cpu_s_per_gib"] for r in results.values()) / len(results), 2),
        "peak_rss_mib": max(r["peak_rss_mib"] for r in results.values()),
    }


def print_report(report: Mapping[str, Any]) -> None:
    for name in ("netfold", "ring"):
        if not report[name]:
            continue
        print(
            f"\n# {name}: {report['workers']} workers, {report['numerics']}, {report['rate_mbps']:g} Mbit/s, "
            f"{report['lanes']} lanes, {report['target']}, loss {report['loss']:g}; "
            f"identical: {report[name]['identical']}",
            flush=True,
        )
        print(
            f"# {'size':>11} {'count':>11} {'type':>8} {'redop':>6} {'time':>10} {'algbw':>9} {'busbw':>9} "
            f"{'#wrong':>7} {'of link':>8}"
        )
        print(f"# {'(B)':>11} {'(elements)':>11} {'':>8} {'':>6} {'(us)':>10} {'(GB/s)':>9} {'(GB/s)':>9}")
        for row in report[name]["rows"]:
            share = row["algbw_gbs"] * 8e3 / report["payload_mbps"]
            print(
                f"  {row['size']:>11} {row['count']:>11} {row['type']:>8} {row['redop']:>6} {row['time_us']:>10.0f} "
                f"{row['algbw_gbs']:>9.5f} {row['busbw_gbs']:>9.5f} {row['wrong']:>7} {share:>8.1%}",
                flush=True,
            )


def print_summary(reports: Sequence[Mapping[str, Any]]) -> None:
    for report in reports:
        print(f"# flows of the first of {report['workers']} workers: {report['netfold']['flows']}")
    columns = (
        "lanes",
        "numerics",
        "goodput of link",
        "elements/s",
        "over ring",
        "retransmits",
        "CPU s/GiB",
        "worker MiB",
        "switch CPU s",
    )
    print(f"\n# {'workers':>7} " + " ".join(f"{column:>15}" for column in columns))
    for report in reports:
        mine = report["netfold"]
        best = mine["rows"][-1]["algbw_gbs"]
        ring = report["ring"] and report["ring"]["rows"][-1]["algbw_gbs"]
        values = (
            report["lanes"],
            report["numerics"],
            f"{best * 8e3 / report['payload_mbps']:.1%}",
            f"{mine['rows'][-1]['count'] / mine['rows'][-1]['time_us']:.2f}M",
            f"{best / ring:.2f}" if ring else "-",
            mine["retransmits"],
            mine["cpu_s_per_gib"],
            mine["peak_rss_mib"],
            report["switch_cpu_s"],
        )
        print(f"  {report['workers']:>7} " + " ".join(f"{value:>15}" for value in values))


if __name__ == "__main__":
    main()
