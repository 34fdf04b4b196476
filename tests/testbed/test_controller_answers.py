# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What a run reports when the controller refuses a call or does not answer in time."""

from __future__ import annotations

import grpc
import pytest

from netfold.testbed.controller_process import _rpc_errors
from netfold.testbed.errors import RunError, RunTimeoutError


class Answer(grpc.RpcError):
    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        self._code, self._details = code, details

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


def test_a_late_answer_is_a_timeout_for_which_a_run_names_its_option():
    with pytest.raises(RunTimeoutError, match="deadline of this step"), _rpc_errors():
        raise Answer(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")


def test_a_refusal_has_the_reason_of_the_controller():
    with pytest.raises(RunError, match=r"^controller: there is no job 'x'$"), _rpc_errors():
        raise Answer(grpc.StatusCode.NOT_FOUND, "there is no job 'x'")
