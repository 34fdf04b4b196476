# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The layout that a rank reads in torch's store, where any process may write, and ranks of other versions do."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict

import pytest

torch = pytest.importorskip("torch", reason="SKIPPED: torch is not installed (pip install 'netfold[torch]')")

import torch.distributed as dist  # noqa: E402

from netfold.traffic.errors import JobRefusedError, TrafficError  # noqa: E402
from netfold.traffic.pytorch.published import (  # noqa: E402
    HostInfo,
    read_decision,
    read_host,
    read_nonce,
    read_outcome,
)
from netfold.traffic.pytorch.rendezvous import RankLayout, _await_layout  # noqa: E402

TIMEOUT_S = 60.0
LAYOUT = RankLayout("s", "job", (0, 1), ("h1", "h2"), ("10.0.0.1", "10.0.0.2"), start_s=2.0, token="secret")
EARLIER = ("session", "job", "places", "names", "addresses", "report", "group_rate")


def answer(**changes: object) -> dict[str, object]:
    return {"nonces": ["n0", "n1"], **asdict(LAYOUT), **changes}


def read(published: bytes | str) -> RankLayout:
    """The layout of rank 1 of two."""
    store = dist.HashStore()
    store.set("session", "s")
    store.set("s/layout", published)
    info, deadline = HostInfo("m1", (), "h2", "n1"), time.monotonic() + TIMEOUT_S
    return _await_layout(store, 1, 2, TIMEOUT_S, deadline, info)


def test_a_layout_is_read_as_it_was_published():
    assert read(json.dumps(answer())) == LAYOUT


def test_a_layout_of_another_version_is_read():
    earlier = {name: value for name, value in answer().items() if name in (*EARLIER, "nonces")}
    assert read(json.dumps(earlier)) == RankLayout("s", "job", (0, 1), ("h1", "h2"), ("10.0.0.1", "10.0.0.2"))
    assert read(json.dumps(answer(of_later=[1], entered={"pid": 1}))) == LAYOUT


def test_a_start_takes_no_longer_than_the_group_s_timeout():
    assert read(json.dumps(answer(start_s=1e300))).start_s == TIMEOUT_S


@pytest.mark.parametrize("refused", [True, False])
def test_an_error_in_place_of_a_layout(refused: bool):
    with pytest.raises(TrafficError, match=r"^rank 0: no link is free$") as caught:
        read(json.dumps({"nonces": ["n0", "n1"], "error": "no link is free", "refused": refused}))
    assert isinstance(caught.value, JobRefusedError) is refused


@pytest.mark.parametrize("published", ["{", "", "[]", "3", "null", b"\xff", b"\0", "[" * 10_000])
def test_what_is_no_answer_fails_at_once(published: bytes | str):
    with pytest.raises(TrafficError, match=r"^rank 0 published no layout: "):
        read(published)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("nonces", None),
        ("nonces", "n0n1"),
        ("nonces", {"1": "n1"}),
        ("error", 3),
        ("session", "another"),
        ("session", None),
        ("job", ["job"]),
        *(
            ("places", value)
            for value in (None, 3, "01", [0], [0, 1, 1], [0, 2], [-1, 0], [0, "1"], [0, 0.5])
        ),
        *(("names", value) for value in (None, [], ["h1"], ["h1", "h2", "h3"], ["h1", 2], "h1")),
        *(("addresses", value) for value in ([], ["10.0.0.1"], ["10.0.0.1", "x" * 300], ["10.0.0.1", "\0"])),
        *(("start_s", value) for value in (-1, math.nan, None, "2")),
        *(("generation", value) for value in (-1, 1 << 32, 1.5, True)),
        *(("token", value) for value in (None, "a\nb", "\u00e9")),
        ("is_kept", "yes"),
        *(("group_rate", value) for value in ("much", math.nan, math.inf, 0, -5)),
        ("job", ""),
    ],
)
def test_a_field_that_makes_no_sense_fails_at_once(name: str, value: object):
    with pytest.raises(TrafficError, match=f"^rank 0 published no layout: {name}") as caught:
        read(json.dumps(answer(**{name: value})))
    assert "secret" not in str(caught.value)


def test_a_message_has_no_more_than_the_beginning_of_what_was_published():
    with pytest.raises(TrafficError, match="places") as caught:
        read(json.dumps(answer(places=[0] * 100_000)))
    assert len(str(caught.value)) < 500


HOST = asdict(HostInfo("m1", ("10.0.0.1",), "h1", "n1"))


@pytest.mark.parametrize(
    ("changes", "nonce"),
    [
        ({"version": "2"}, "n1"),
        ({"addresses": ["fe80::1"]}, "n1"),
        ({"host": "\udcff"}, "n1"),
        ({"nonce": 3}, ""),
        ({"nonce": "\udcff"}, ""),
    ],
)
def test_a_rank_whose_description_makes_no_sense_gets_the_answer_by_its_nonce(changes, nonce: str):
    text = json.dumps({**HOST, **changes}).encode()
    with pytest.raises(TrafficError, match=r"^rank 1 published no description of its host: "):
        read_host(text, 1)
    assert read_nonce(text) == nonce


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[]", b"null", b"[" * 100_000])
def test_what_is_no_json_object_has_no_nonce_and_is_no_decision(text: bytes):
    assert read_nonce(text) == ""
    with pytest.raises(TrafficError, match=r"^rank 0 published no decision: "):
        read_decision(text)
    with pytest.raises(TrafficError, match=r"^rank 1 published no outcome: "):
        read_outcome(text, 1)
