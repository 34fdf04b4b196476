# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes of requests to the control socket, in the switch's words."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from softswitch.admin.requests import REQUEST, explain


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"op": "fly"}', "op is 'fly'; expected one of 'info', 'ports', "),
        ('{"port": 1}', "'op' is missing"),
        ('{"op": "remove-port"}', "'port' is missing"),
        ('{"op": "ports", "extra": 1}', "'extra' is unknown"),
        ('{"op": "remove-port", "port": "one"}', "port is 'one'; expected a whole number"),
        ('{"op": "set-rate", "port": 1, "rate": 1, "queue": 0}', "queue is 0; expected at least 1"),
        ('{"op": "set-rate", "port": 1, "rate": "fast"}', "rate 'fast': expected a rate such as 100mbit"),
        (
            '{"op": "set-faults", "port": -1, "direction": "up"}',
            "port is -1; expected at least 0; direction is 'up'; expected 'in' or 'out'",
        ),
        ('{"op": "add-port", "port": 1, "interface": ""}', "interface is ''; expected at least 1 characters"),
        ("[]", "the request is no JSON object"),
        ("{", "the request is no JSON: "),
    ],
)
def test_every_mistake_of_a_request_is_named_in_plain_words(line: str, said: str) -> None:
    with pytest.raises(ValidationError) as caught:
        REQUEST.validate_json(line)
    assert explain(caught.value).startswith(said)
