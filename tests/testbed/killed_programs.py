# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Programs of test_killed_programs.py, one after the other: the ranks of each are forked, on hosts, and killed at a
random moment: in their start, or in their calls. Runs in .venv-torch. After each program it writes a line, a JSON
object, and waits for one.

    python killed_programs.py --hosts PID:ADDRESS,... --controller ADDRESS --temporary FOLDER --seed N --rounds N
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

from netfold.testbed.network.namespaces import enter

GROUP_S = 15
END_S = 60.0
"""Within which the ranks that are left have to end."""
LAST_KILL_S = 2.5
CALLS = 40
PORT = 29600


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hosts", required=True)
    parser.add_argument("--controller", required=True)
    parser.add_argument("--temporary", required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--rounds", type=int, required=True)
    options = parser.parse_args()
    hosts = [(int(pid), address) for pid, address in (one.split(":") for one in options.hosts.split(","))]
    draw = random.Random(options.seed)
    os.environ.update(
        NETFOLD_CONTROLLER=options.controller,
        TMPDIR=options.temporary,
        GLOO_SOCKET_IFNAME="eth0",
        NETFOLD_LEASE_MS="5000",
    )
    for number in range(options.rounds):
        ranks = [*hosts, hosts[-1]][: draw.choice((2, 3))]
        victims = draw.choice(([0], [1], [len(ranks) - 1], [*range(len(ranks))]))
        kill = draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM))
        in_calls, after_s = draw.random() < 0.5, draw.uniform(0, LAST_KILL_S)
        started, start = os.pipe()
        pids = []
        for rank, (pid, _) in enumerate(ranks):
            if not (child := os.fork()):
                enter(pid)
                run_rank(f"tcp://{hosts[0][1]}:{PORT + number}", rank, len(ranks), start)
                return
            pids.append(child)
        if in_calls:
            select.select([started], [], [], GROUP_S)
        time.sleep(after_s)
        for victim in victims:
            os.kill(pids[victim], kill)
        codes = [ended(pid) for pid in pids]
        os.close(started)
        os.close(start)
        sys.stdout.write(
            json.dumps(
                {
                    "ranks": len(ranks),
                    "victims": victims,
                    "signal": kill.name,
                    "in_calls": in_calls,
                    "after_s": after_s,
                    "codes": codes,
                }
            )
            + "\n"
        )
        sys.stdout.flush()
        sys.stdin.readline()


def ended(pid: int) -> int | None:
    """The exit code of a rank, which ends within END_S; None: it does not, and is killed."""
    deadline = time.monotonic() + END_S
    while time.monotonic() < deadline:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def run_rank(store: str, rank: int, size: int, start: int) -> None:
    dist.init_process_group(
        "netfold", init_method=store, rank=rank, world_size=size, timeout=timedelta(seconds=GROUP_S)
    )
    os.write(start, b"\0")
    tensor = torch.ones(20_000)
    for _ in range(CALLS):
        dist.all_reduce(tensor)
        dist.broadcast(tensor, 0)
        dist.barrier()
        time.sleep(0.02)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
