# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Events: what is kept of them, and for how long."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from netfold.controller.service import events as module
from netfold.controller.service.events import KEPT_DAYS, Event, EventFiles

DAY_S = 86_400.0
NOON = 1_700_000_000.0 - 1_700_000_000.0 % DAY_S + DAY_S / 2


def event(at: float = NOON, target: str = "digits") -> Event:
    return Event(at, "SubmitJob", "alice", "vision", "ipv4:127.0.0.1:1", target, "ok")


def files(folder: Path) -> closing[EventFiles]:
    return closing(EventFiles(folder / "events"))


async def targets(opened: EventFiles, since: float = 0.0) -> list[str]:
    return [json.loads(line)["target"] async for lines in opened.read(since, follow=False) for line in lines]


async def test_events_outlive_their_writer_in_order(tmp_path):
    with files(tmp_path) as opened:
        for number in range(250):
            opened.add(event(NOON + number, str(number)))
        opened.add(event(NOON + DAY_S, "tomorrow"))
    with files(tmp_path) as opened:
        assert await targets(opened) == [*map(str, range(250)), "tomorrow"]
        assert await targets(opened, NOON + 249) == ["249", "tomorrow"]
        assert await targets(opened, NOON + 9 * DAY_S) == []
    assert (tmp_path / "events").stat().st_mode & 0o077 == 0


async def test_a_reader_follows_events_of_this_and_of_another_process(tmp_path):
    with files(tmp_path) as opened, files(tmp_path) as other:
        async with asyncio.timeout(20):
            reading = opened.read(0.0, follow=True)
            opened.add(event(target="own"))
            assert "own" in (await anext(reading))[0]
            other.add(event(target="other"))
            assert "other" in (await anext(reading))[0]


async def test_files_are_bounded_in_number_and_size(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_DAY_BYTES", 2000)
    with files(tmp_path) as opened:
        for day in range(KEPT_DAYS + 5):
            opened.add(event(NOON + day * DAY_S))
        for _ in range(100):
            opened.add(event(NOON + KEPT_DAYS * DAY_S))
    kept = sorted((tmp_path / "events").iterdir())
    assert len(kept) == KEPT_DAYS
    assert all(file.stat().st_size <= 2000 for file in kept)


async def test_a_line_that_a_full_disk_has_cut_is_left_out(tmp_path):
    with files(tmp_path) as opened:
        opened.add(event(target="first"))
    (file,) = (tmp_path / "events").iterdir()
    with file.open("a") as cut:
        cut.write('{"at": 17')
    with files(tmp_path) as opened:
        opened.add(event(target="spoiled by the cut"))
        opened.add(event(NOON + 1, "last"))
    with files(tmp_path) as opened:
        assert await targets(opened) == ["first", "last"]


@pytest.mark.parametrize("since", [0.0, -float("inf")])
async def test_a_reader_gets_no_line_that_is_no_event(since, tmp_path):
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "2023-11-14.jsonl").write_text('{"at": 17{"at"\n')
    with files(tmp_path) as opened:
        assert await targets(opened, since) == []


async def test_a_flood_of_one_tenant_leaves_room_for_the_events_of_others(tmp_path, monkeypatch):
    size = len(event().line())
    monkeypatch.setattr(module, "MAX_DAY_BYTES", 20 * size)
    monkeypatch.setattr(module, "MAX_TENANT_BYTES", 5 * size)
    with files(tmp_path) as opened:
        for _ in range(100):
            opened.add(event(), "vision")
        opened.add(event(target="-other"), "speech")
        opened.add(event(target="operate"))
        opened.add(event(NOON + DAY_S), "vision")
    with files(tmp_path) as opened:
        assert await targets(opened) == ["digits"] * 5 + ["-other", "operate", "digits"]


async def test_a_disk_that_cannot_be_written_delays_no_call(tmp_path, caplog):
    (tmp_path / "events").write_text("no folder")
    with files(tmp_path) as opened:
        for _ in range(module.MAX_WAITING * 2):
            opened.add(event())
        assert await targets(opened) == []
    assert "cannot be written" in caplog.text


@pytest.mark.parametrize("since", [-1e300, float("nan"), 1e300, float("inf")])
async def test_a_request_with_any_time_is_answered(since, tmp_path):
    with files(tmp_path) as opened:
        await targets(opened, since)
