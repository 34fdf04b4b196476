# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Texts of clients become parts of reasons, logs and messages only in one line of bounded length, without control
characters."""

from __future__ import annotations

import grpc
import pytest

from netfold.controller.service.request_texts import MAX_TEXT, make_plain, plain_text
from netfold.protocol import netfold_pb2 as pb
from netfold.topologies.generators import single_switch
from tests.controller.deployment import served

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
SPEC = "name: job\nworkers: 2\nscheme: switchml\nrate: 20\n"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("ana@node1", "ana@node1"),
        ("", ""),
        ("größer", "größer"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("two\nlines\r", "two\\nlines\\r"),
        ("\u202eright to left", "\\u202eright to left"),
        ("x" * MAX_TEXT, "x" * MAX_TEXT),
        ("x" * (MAX_TEXT + 1), "x" * (MAX_TEXT - 3) + "..."),
        ("\x00" * MAX_TEXT, ("\\x00" * MAX_TEXT)[: MAX_TEXT - 3] + "..."),
    ],
)
def test_a_plain_text(text, plain):
    assert plain_text(text) == plain


def test_all_texts_of_a_request_are_made_plain_but_the_job_file():
    submission = pb.SubmitJobRequest(spec_yaml="a\nb", source="\n")
    make_plain(submission)
    assert (submission.spec_yaml, submission.source) == ("a\nb", "\\n")
    replan = pb.ReplanRequest(jobs=["a", "\x1b"])
    make_plain(replan)
    assert list(replan.jobs) == ["a", "\\x1b"]


async def test_what_clients_name_is_stored_told_and_refused_in_plain_and_short_texts(tmp_path):
    async with served(single_switch(3), tmp_path) as (deployment, stub):
        await stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=SPEC))
        by = ESCAPE + "x" * 7_000_000
        canceled = await stub.CancelJob(pb.CancelJobRequest(name="job", canceled_by=by))
        [stored] = deployment.store.jobs()
        for reason in (canceled.reason, stored.reason):
            assert len(reason) < 600
            assert reason.isprintable()
            assert "owned" in reason
        for call in (
            stub.GetJob(pb.JobName(name=ESCAPE + "y" * 60_000)),
            stub.Replan(pb.ReplanRequest(jobs=[ESCAPE])),
            stub.SubmitJob(pb.SubmitJobRequest(spec_yaml="no: 1", source=ESCAPE)),
            stub.SubmitJob(pb.SubmitJobRequest(spec_yaml=f"name: a\nscheme: {'z' * 200_000}\n")),
            stub.AddWorkers(pb.AddWorkersRequest(name="job", hosts=[ESCAPE])),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            assert refused.value.code() in (
                grpc.StatusCode.NOT_FOUND,
                grpc.StatusCode.INVALID_ARGUMENT,
                grpc.StatusCode.RESOURCE_EXHAUSTED,
            )
            assert refused.value.details().replace("\n", "").isprintable()
            assert len(refused.value.details()) <= 4000
