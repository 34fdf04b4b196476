# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One rank of test_reconfigured_groups.py: sums 2^number of each rank, so that a sum names the ranks that are in it. It
joins the members of the newest file in `members`: their numbers, by rank. Each step writes what it has to `out`. All
end after the step in which one has found the file `finish`. The rank whose number is in the file `dying` beside
`members` dies when it has got the job's next generation, and nothing else knows of it."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

import netfold
from netfold.traffic.pytorch import kept_job
from netfold.traffic.pytorch.collectives import collectives_of

SIZE = 5000
END = 8
"""Added by a rank that has found the file."""
LIMIT = timedelta(seconds=20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--store", required=True)
    parser.add_argument("--members", type=Path, required=True)
    parser.add_argument("--finish", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    host, port = options.store.split(":")
    store = dist.TCPStore(host, int(port), is_master=options.number == 0, wait_for_workers=False)
    dist.init_process_group(
        "netfold",
        store=store,
        rank=options.number,
        world_size=3,
        timeout=LIMIT,
        enable_reconfigure=True,
        pg_options=netfold.TorchOptions(lease_ms=3000),
    )
    assert dist.distributed_c10d._supports_reconfigure()
    uuid, total = 0, 0
    while total < END:
        newest = max((int(path.name) for path in options.members.iterdir()), default=0)
        members = json.loads((options.members / f"{newest}").read_text()) if newest else []
        try:
            if newest != uuid and options.number in members:
                uuid = newest
                dying = options.members.with_name("dying")
                if dying.exists() and int(dying.read_text()) == options.number:
                    die_with_the_answer()
                reconfigure(store, uuid, options.number, members)
            tensor = torch.full((SIZE,), 2**options.number + END * options.finish.exists(), dtype=torch.int32)
            dist.all_reduce(tensor)
        except dist.DistBackendError as error:
            sys.stderr.write(f"{error}\n")
            time.sleep(0.05)  # until there are other members
            continue
        total = int(tensor[0])
        layout = collectives_of(dist.group.WORLD).layout
        step = {
            "replicas": dist.get_world_size(),
            "total": total % END if total < END else total,
            "job": layout.job,
            "generation": layout.generation,
            "wrong": []
            if (tensor == total).all() and dist.get_rank() == members.index(options.number)
            else [uuid],
        }
        written = options.out.with_suffix(".part")
        written.write_text(json.dumps(step))
        written.rename(options.out)
    dist.destroy_process_group()


def die_with_the_answer() -> None:
    reconfigure_job = kept_job.reconfigure_job

    def dies(*arguments: Any) -> None:
        reconfigure_job(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    kept_job.reconfigure_job = dies


def reconfigure(store: dist.Store, uuid: int, number: int, members: list[int]) -> None:
    store.set(f"{uuid}/{number}", dist.distributed_c10d._get_reconfigure_handle())
    handles = [store.get(f"{uuid}/{member}").decode() for member in members]
    dist.distributed_c10d._reconfigure(uuid, handles, timeout=LIMIT).wait()


if __name__ == "__main__":
    main()
