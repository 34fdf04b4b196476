# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""One replica of test_torchft_quorums.py: torchft's manager averages 2^number of each replica's number, so that an
average names the replicas that are in it. Each step writes what it has to `out`. All end after the step in which one
has found the file `finish`."""

from __future__ import annotations

import argparse
import json
import os
import socket
from datetime import timedelta
from pathlib import Path

import torch
import torchft
from torch.distributed import TCPStore

from netfold.traffic.pytorch.fault_tolerance import ProcessGroupNetfold
from netfold.traffic.pytorch.options import TorchOptions

SIZE = 5000
END = 8
"""Added by a replica that has found the file."""
LIMIT = timedelta(seconds=20)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--lighthouse", required=True)
    parser.add_argument("--finish", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    socket.gethostname = lambda: options.address  # by which torchft's replicas give each other their state
    store = TCPStore(options.address, 0, is_master=True, wait_for_workers=False)
    group = ProcessGroupNetfold(LIMIT, TorchOptions(lease_ms=3000))
    manager = torchft.Manager(
        pg=group,
        min_replica_size=1,  # one that heals takes part in no step
        timeout=LIMIT,
        state_dict=dict,
        load_state_dict=lambda state: None,
        replica_id=f"replica{options.number}",
        lighthouse_addr=options.lighthouse,
        hostname=options.address,
        store_addr=options.address,
        store_port=store.port,
        rank=0,
        world_size=1,
    )
    wrong = []
    ends = False
    while not ends:
        manager.start_quorum()
        tensor = torch.full((SIZE,), float(2**options.number + END * options.finish.exists()))
        manager.allreduce(tensor).wait()
        if not manager.should_commit():
            continue
        count = manager.num_participants()
        average = tensor[0].item() * count
        total = round(average) % END
        ends = average >= END
        if (
            not (tensor == tensor[0]).all()
            or abs(round(average) - average) > 1e-4
            or total.bit_count() > count
        ):
            wrong.append([manager.current_step(), count, average])
        layout = group._group.layout
        step = {
            "step": manager.current_step(),
            "replicas": count,
            "total": total,
            "job": layout.job,
            "generation": layout.generation,
            "wrong": wrong,
        }
        written = options.out.with_suffix(".part")
        written.write_text(json.dumps(step))
        written.rename(options.out)
    group.shutdown()
    manager.shutdown(wait=False)
    os._exit(0)


if __name__ == "__main__":
    main()
