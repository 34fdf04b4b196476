# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""An event belongs to the program that it came about in, whatever runs when it is read."""

from __future__ import annotations

import json
from pathlib import Path

from mutations import base
from running import running
from softswitch.state.entities import DigestEvent
from softswitch.state.pipeline import Pipeline

LEARN = bytes(12) + (0x88B5).to_bytes(2, "big") + bytes(46)


def test_what_the_old_program_said_is_not_read_as_the_new_ones(cache_dir: Path) -> None:
    kinds = json.dumps(base("kinds")).encode()
    with running(kinds, cache_dir) as (pipeline, switch):
        pipeline.digest_enable("seen_t", True)
        switch.inject(1, LEARN, 1000)
        assert [type(event) for event in switch.events()] == [DigestEvent]
        switch.inject(1, LEARN, 2000)
        other = Pipeline.load(kinds, cache_dir)
        assert switch.swap(other) is pipeline
        assert switch.events() == []
        other.digest_enable("seen_t", True)
        switch.inject(1, LEARN, 3000)
        (event,) = switch.events()
        assert event.time_ns == 3000
        switch.inject(1, LEARN, 4000)
        switch.swap(pipeline)
        assert switch.events() == []
        other.close()
