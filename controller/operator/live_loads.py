# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The loads of a running fabric as the controller measures them: for `netfold plan --live`."""

from __future__ import annotations

import json

from netfold.controller.health.link_loads import planning_load
from netfold.controller.planning.document import plan_from_document
from netfold.controller.planning.plan import Loads
from netfold.controller.planning.validate import add_loads
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc

ANSWER_S = 10


async def live_loads(stub: pb_grpc.ControllerStub, *, without: str = "") -> Loads:
    """Rates that jobs (but one) were promised, and rates of other traffic."""
    status = await stub.GetStatus(pb.StatusRequest(), timeout=ANSWER_S)
    foreign = {(k.sender, k.receiver): planning_load(k.cross_traffic, k.capacity) for k in status.links}
    loads = Loads(links={link: load for link, load in foreign.items() if load})
    for job in (await stub.ListJobs(pb.ListJobsRequest(), timeout=ANSWER_S)).jobs:
        if job.state in (pb.INSTALLING, pb.RUNNING) and job.plan_json and job.name != without:
            loads = add_loads(loads, plan_from_document(json.loads(job.plan_json)).loads)
    return loads
