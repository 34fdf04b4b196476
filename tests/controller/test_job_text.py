# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`job show` of a large job: a summary, exceptions first; of a small one each member."""

from __future__ import annotations

import json

from netfold.controller.operator.job_text import MAX_LINES, job_lines
from netfold.protocol import netfold_pb2 as pb


def job(count: int, absent: int = 0, left: int = 0) -> pb.Job:
    members = [
        pb.Member(host=f"h{n}", connected=n > absent + left, left=absent < n <= absent + left)
        for n in range(1, count + 1)
    ]
    nodes = {f"leaf{n // 16}": [f"h{n + i}" for i in range(1, 17)] for n in range(0, count, 16)}
    nodes["spine1"] = list(nodes)
    plan = {
        "algorithm": "panama", "rate": 100.0, "unit": "Gbit/s", "bound": None,
        "trees": [{"root": "spine1", "share": 1.0, "nodes": nodes}],
        "installed": [{"tree": 7, "slots": 64, "window": 32}],
    }  # fmt: skip
    return pb.Job(name="large", state=pb.RUNNING, epoch=3, members=members, plan_json=json.dumps(plan))


def test_a_job_of_a_thousand_members_is_a_few_lines_with_the_exceptions_first() -> None:
    lines = list(job_lines(job(1024, absent=2, left=30)))
    text = "\n".join(lines)
    assert len(lines) <= 8
    assert "  2 workers absent: h1, h2" in lines
    assert "  30 workers left: h3, h4, h5, h6, h7, h8, h9, h10 and 22 more" in lines
    assert "  992 workers connected" in lines
    order = [text.index(part) for part in ("absent", "workers left", "992 workers")]
    assert order == sorted(order)
    assert (
        "tree 7: root spine1, share 1.000, 64 slots, window 32: 65 nodes, at most 64 children (spine1)"
        in text
    )


def test_a_small_job_names_each_member_and_node() -> None:
    lines = list(job_lines(job(MAX_LINES - 1, absent=1)))
    assert "  worker h1: absent" in lines
    assert f"  worker h{MAX_LINES - 1}: connected" in lines
