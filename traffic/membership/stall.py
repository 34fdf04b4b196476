# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The controller's knowledge of a job whose call timed out: which members are absent, which switches and parameter
servers add up."""

from __future__ import annotations

import json
import time

import grpc

from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as rpc
from netfold.protocol.channels import open_channel
from netfold.protocol.connection import Connection
from netfold.protocol.listing import listing

MAX_HOSTS = 16
"""Names in a message; of the others their number."""


def describe_stall(where: Connection, job: str, timeout_s: float) -> str:
    """A clause for an error message; empty if no controller answers within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    try:
        with open_channel(where, timeout_s) as channel:
            left_s = max(0.0, deadline - time.monotonic())
            return stall_of(rpc.ControllerStub(channel).GetJob(pb.JobName(name=job), timeout=left_s))
    except grpc.RpcError:
        return ""


def stall_of(job: pb.Job) -> str:
    absent = [m.host for m in job.members if not (m.connected or m.left or m.unused)]
    clauses = [f"not connected to the controller: {listing(absent, MAX_HOSTS)}"] if absent else []
    if not absent and job.members and not job.standby_of:
        clauses.append("all members are connected, so a worker is not in the call, or packets are lost")
    return "; ".join([*clauses, *_trees(job.plan_json)])


def _trees(plan_json: str) -> list[str]:
    """Return each tree's number and the nodes that add up, the root first."""
    if not plan_json:
        return []
    plan = json.loads(plan_json)
    rows = []
    for tree, numbers in zip(plan["trees"], plan["installed"], strict=True):
        nodes = [tree["root"], *(n for n in tree["nodes"] if n != tree["root"])]
        rows.append(f"tree {numbers['tree']} adds up at {listing(nodes, MAX_HOSTS)}")
    return rows
