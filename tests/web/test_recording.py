# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings: bounded in memory and on disk, readable from any segment, and checked when they come from elsewhere."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from netfold.controller.recording.history import History
from netfold.controller.recording.lines import (
    RecordingSource,
    State,
    change_line,
    event_line,
    fabric_line,
    merge,
    state_line,
)
from netfold.controller.recording.recording_file import (
    RecordingError,
    RecordingFile,
    old_half,
    read_recording,
)
from netfold.topologies.generators import single_switch

FABRIC = fabric_line(single_switch(2), RecordingSource.CONTROLLER)


def rebuilt(lines: list[str]) -> State:
    """The state after these lines, which start with a segment."""
    state: State = {}
    for line in lines:
        row = json.loads(line)
        if row["kind"] == "state":
            state = {}
        merge(state, row.get("state", {}))
    return state


def read_all(history: History, step: int) -> list[str]:
    """Returns the lines that are kept, read by `step` at a time."""
    lines: list[str] = []
    number = 0
    while number < history.end:
        more, number = history.read(number, step)
        lines += more
    return lines


def grow(history: History, files: list[RecordingFile], steps: int, seed: int) -> State:
    """Random changes, and a segment every tenth line; the state in the end."""
    state: State = {}
    draw = random.Random(seed)
    for step in range(steps):
        key, value = f"k{draw.randrange(20)}", draw.choice([None, 1, "x" * 100])
        changes = {"jobs": {key: value}}
        merge(state, changes)
        for sink in (history, *files):
            if step % 10 == 0:
                sink.start_segment([FABRIC, state_line(step, state)])
            else:
                sink.append([change_line(step, changes)])
    return state


def test_a_reader_of_all_lines_has_the_state():
    history = History()
    state = grow(history, [], 95, seed=1)
    lines = read_all(history, 1000)
    assert len(lines) == history.end
    assert rebuilt(lines) == state


def test_old_segments_are_dropped_and_a_late_reader_starts_at_a_whole_state():
    history = History(max_bytes=6000)
    state = grow(history, [], 400, seed=2)
    lines = read_all(history, 7)
    assert sum(map(len, lines)) < 6000 + 4000, "more is kept than wanted"
    assert json.loads(lines[0])["kind"] == "fabric"
    assert rebuilt(lines) == state


def test_a_reader_in_small_steps_misses_nothing():
    history = History()
    grow(history, [], 50, seed=3)
    assert read_all(history, 3) == read_all(history, 1000)


def test_a_file_stays_in_its_bounds_and_its_halves_are_read_in_order(tmp_path: Path):
    path = tmp_path / "recording.jsonl"
    file = RecordingFile(path, max_bytes=20_000)
    history = History()
    state = grow(history, [file], 600, seed=4)
    file.close()
    assert old_half(path).is_file()
    assert path.stat().st_size + old_half(path).stat().st_size < 20_000 + 8_000
    lines = list(read_recording(path))
    assert rebuilt(lines) == state
    times = [row["at"] for row in map(json.loads, lines) if "at" in row]
    assert times == sorted(times)


def test_another_recording_at_the_same_path_keeps_the_last_one(tmp_path: Path):
    path = tmp_path / "recording.jsonl"
    for at in (1.0, 2.0):
        file = RecordingFile(path)
        file.start_segment([FABRIC, state_line(at, {})])
        file.close()
    assert [json.loads(line)["at"] for line in read_recording(path) if '"state"' in line] == [1.0, 2.0]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path):
    path = tmp_path / "cut.jsonl"
    path.write_text("\n".join([FABRIC, state_line(1, {}), event_line(2, "job", "runs")])[:-5])
    assert list(read_recording(path)) == [FABRIC, state_line(1, {})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "is empty"),
        ("{", "expected a whole line"),
        ("nonsense\n", "expected a JSON object"),
        ("[" * 100_000 + "\n", "expected a JSON object"),
        ('{"kind":"state","at":1,"state":{}}\n', "kind 'fabric' first"),
        ('{"kind":"fabric","version":99}\n', "version 99"),
        ('{"kind":"fabric","version":1,"switches":[{}],"hosts":[],"links":[]}\n', "'switches'"),
        (FABRIC + '\n{"kind":"surprise"}\n', "kind 'surprise' is unknown"),
        (FABRIC + '\n{"kind":"change","at":"now","state":{}}\n', "'at' to be seconds"),
        (FABRIC + '\n{"kind":"change","at":NaN,"state":{}}\n', "NaN is no JSON"),
        (FABRIC + '\n{"kind":"change","at":1,"state":[]}\n', "'state'"),
        (FABRIC + '\n{"kind":"event","at":1,"event":"job"}\n', "'event' and 'text'"),
        ("\udcff", "UTF-8"),
    ],
)
def test_a_bad_recording_is_refused_with_place_and_reason(tmp_path: Path, text: str, expected: str):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(RecordingError, match=expected) as caught:
        list(read_recording(path))
    assert str(path) in str(caught.value)


def test_a_recording_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path):
    with pytest.raises(RecordingError, match="No such file or directory"):
        RecordingFile(tmp_path / "nowhere" / "recording.jsonl")
