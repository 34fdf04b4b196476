# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The last calls of a worker: what the engine records, what a heartbeat carries, and what is written to files."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from netfold.traffic.engine.call_log import CALLS_MAX
from netfold.traffic.errors import AllReduceTimeoutError
from netfold.traffic.worker.call_dump import CALL_DUMPS, new_file, program_location, write_calls
from tests.traffic.rig import Faults, rig


def send_signal() -> None:
    """Returns when the files are written."""
    signal.raise_signal(signal.SIGUSR1)
    for thread in threading.enumerate():
        if thread.name == "netfold dump":
            thread.join()


def test_a_record_has_the_call_and_its_times() -> None:
    with rig(2) as r:
        before = time.monotonic()
        assert r.all_reduce([np.ones(100, np.float32)] * 2) == [None, None]
        (record,) = r.workers[0].stats.recent(CALLS_MAX)
        assert record[:3] == (0, "all_reduce", 400)
        assert (record.dtype, record.epoch, record.trees) == ("float32", 1, 1)
        assert (record.state, record.status, record.outstanding) == ("finished", "done", 0)
        assert before <= record.submitted <= record.started <= record.ended <= time.monotonic()


def test_a_record_counts_retransmissions_of_its_call() -> None:
    with rig(2, faults=Faults(loss=0.3), seed=4) as r:
        assert r.all_reduce([np.ones(400, np.float32)] * 2) == [None, None]
        for worker in r.workers:  # the exchange before the first call has some, too
            assert 0 < worker.stats.recent(1)[0].retransmits <= worker.retransmits


def test_the_ring_keeps_the_newest_calls() -> None:
    with rig(2) as r:
        for _ in range(5):
            r.all_reduce([np.ones(8, np.int32)] * 2)
        assert [c.number for c in r.workers[1].stats.recent(3)] == [2, 3, 4]


def test_a_call_that_others_do_not_make_is_present_and_lacks_results() -> None:
    with rig(2) as r:
        r.all_reduce([np.ones(64, np.float32)] * 2)
        worker = r.workers[0]
        handle = worker.submit(np.ones(64, np.float32), timeout=30.0)
        progress = worker.stats.progress
        assert progress is not None
        assert progress().next_call == 1
        present = progress().present
        assert present is not None
        assert (present.kind, present.bytes) == ("all_reduce", 256)
        while not worker.stats.recent(1)[0].started:  # the engine's thread starts it
            assert not handle.wait(0.01)
        (record,) = worker.stats.recent(1)
        assert (record.status, record.ended) == ("pending", 0.0)
        assert record.outstanding > 0
        other = r.workers[1].stats.progress
        assert other is not None
        assert other().present is None
        worker.close()
        assert handle.done()


def test_a_timeout_writes_the_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_DUMP_DIR", str(tmp_path / "new"))
    with rig(2) as r:
        r.all_reduce([np.ones(64, np.float32)] * 2)
        with pytest.raises(AllReduceTimeoutError):
            r.workers[0].all_reduce(np.ones(64, np.float32), timeout=0.3)
    (file,) = (tmp_path / "new").iterdir()
    header, _, call = [json.loads(line) for line in file.read_text().splitlines()]
    assert (header["job"], header["rank"], header["pid"]) == ("test", 0, os.getpid())
    assert header["reason"] == "a call timed out"
    assert (call["kind"], call["status"]) == ("all_reduce", "timeout")
    assert call["outstanding"] > 0
    assert abs(call["ended"] - time.time()) < 60


def test_a_signal_writes_the_calls_and_the_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_DUMP_DIR", str(tmp_path))
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        with rig(2) as r:
            r.all_reduce([np.ones(8, np.float32)] * 2)
            send_signal()
        stacks = tmp_path / f"netfold-stacks-{os.getpid()}.txt"
        assert len(list(tmp_path.glob("netfold-calls-test-*.jsonl"))) == 2
        assert "test_call_log" in stacks.read_text()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_handler_of_the_program_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETFOLD_DUMP_DIR", str(tmp_path))
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with rig(2):
            assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_without_a_folder_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETFOLD_DUMP_DIR", raising=False)
    with rig(2) as r:
        handler = signal.getsignal(signal.SIGUSR1)
        CALL_DUMPS.dump(r.workers[0], "a reason")
        assert signal.getsignal(signal.SIGUSR1) is handler


class Numbers:
    """A dumper of some calls."""

    def dump_to(self, folder: Path, reason: str) -> None:
        write_calls(folder / "netfold-calls-j-0-1.jsonl", {"reason": reason}, [])


def test_links_in_the_folder_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, precious = tmp_path / "dumps", tmp_path / "precious"
    folder.mkdir()
    precious.write_text("as before")
    monkeypatch.setenv("NETFOLD_DUMP_DIR", str(folder))
    for name in (".netfold-calls-j-0-1.jsonl.part", "netfold-calls-j-0-1.jsonl"):
        (folder / name).symlink_to(precious)
    CALL_DUMPS.dump(Numbers(), "a reason")
    assert precious.read_text() == "as before"
    (file,) = folder.iterdir()
    assert not file.is_symlink()
    assert "a reason" in file.read_text()


def test_a_dump_that_fails_leaves_the_last_one_alone(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_text("as before")
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="Circular"), new_file(path) as file:
        json.dump(["half of it", endless], file)
    assert [path] == list(tmp_path.iterdir())
    assert path.read_text() == "as before"


def test_a_folder_that_cannot_be_made_fails_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NETFOLD_DUMP_DIR", str(tmp_path / "file"))
    before = signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    try:
        with rig(2):
            send_signal()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(caplog.records) >= 3  # two workers, and the stacks
    assert all("cannot be written" in r.message for r in caplog.records)


def test_the_location_is_in_the_program_not_in_a_library() -> None:
    """Also where the main thread waits in the standard library, such as for a data loader."""
    with ThreadPoolExecutor(1) as pool:
        location = pool.submit(program_location).result()
    assert location.endswith(" in test_the_location_is_in_the_program_not_in_a_library")
