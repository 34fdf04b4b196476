# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""The processes that run in hosts, as processes, on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SERVER, PORT = "127.44.0.100", 61655


def netfold(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from netfold.cli import main; main()", "host", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def write_assignment(path: Path, rank: int, workers: int, children: list[int] | None = None) -> str:
    tree = {"tree": 1, "share": 1, "slots": 256, "window": 128, "child": rank, "destination": SERVER}
    if children is not None:
        tree["children"] = children
    assignment = {"job": "j", "epoch": 1, "udpPort": PORT, "lanes": 64, "rank": rank, "workers": workers}
    path.write_text(json.dumps({**assignment, "trees": [tree]}))
    return str(path)


def test_two_workers_train_through_a_parameter_server(tmp_path):
    hosts = ["127.44.0.1", "127.44.0.2"]
    server_file = write_assignment(tmp_path / "ps.json", 0, 2, [0, 1])
    server = netfold(
        "ps", "--assignment", server_file, "--local", SERVER, "--reply-to", ",".join(hosts), "--threads", "2"
    )
    workers = []
    try:
        for rank, host in enumerate(hosts):
            file = write_assignment(tmp_path / f"{rank}.json", rank, 2)
            out = [
                "--out",
                str(tmp_path / f"out{rank}.json"),
                "--progress",
                str(tmp_path / f"progress{rank}"),
            ]
            workers.append(netfold("worker", "--assignment", file, "--local", host, "--epochs", "12", *out))
        for process in workers:
            assert process.communicate(timeout=60) == ("", "")
            assert process.returncode == 0
        server.send_signal(signal.SIGTERM)
        report, errors = server.communicate(timeout=20)
        assert (server.returncode, errors) == (0, "")
    finally:
        for process in (server, *workers):
            process.kill()
            process.communicate()
    results = [json.loads((tmp_path / f"out{rank}.json").read_text()) for rank in range(2)]
    assert results[0]["digest"] == results[1]["digest"]
    assert [r["wrong_elements"] for r in results] == [0, 0]
    assert results[0]["checked_elements"] == results[0]["calls"] * results[0]["elements"] > 0
    assert results[0]["accuracy"] == pytest.approx(results[0]["reference_accuracy"], abs=0.01)
    assert json.loads(report)["verdicts"]["result_sent"] > 0
    lines = (tmp_path / "progress0").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == list(range(1, 13))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["worker"], "--job is needed"),
        (["worker", "--assignment", "/nonexistent"], "No such file or directory: '/nonexistent'"),
        (["worker", "--job", "j", "--host", "h", "--fixed-bits", "300"], "is 300; it must be -96 to 126"),
        (
            [
                "worker",
                "--job",
                "j",
                "--host",
                "h",
                "--controller",
                "localhost:1",
                "--tls-ca",
                "/nonexistent",
            ],
            "certificate or token cannot be read: /nonexistent: No such file or directory",
        ),
        (["ring", "--hosts", "127.0.0.1", "--rank", "1"], "--rank is 1, but --hosts names 1"),
        (["ring", "--hosts", "127.0.0.1", "--rank", "0", "--workload", "gpt"], "model 'gpt' is unknown"),
        (
            ["ring", "--hosts", "127.0.0.1", "--rank", "0", "--workload", "sizes", "--sizes", "4X"],
            "--sizes has '4X'",
        ),
        (["background", "127.0.0.1", "--protocol", "sctp"], "'sctp' is not a valid Protocol"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_1(arguments, message):
    process = netfold(*arguments)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 1
    assert message in errors
    assert len(errors.splitlines()) == 1
    assert output == ""


@pytest.mark.slow
def test_background_traffic_is_sent_and_taken():
    sink = netfold("background", "127.44.0.50", "--sink", "--port", "5999", "--seconds", "4")
    try:
        source = netfold(
            "background", "127.44.0.50", "--port", "5999", "--rate-mbps", "4", "--seconds", "1.5"
        )
        sent = json.loads(source.communicate(timeout=30)[0])
        taken = json.loads(sink.communicate(timeout=30)[0])
    finally:
        sink.kill()
        sink.communicate()
    assert sent["bytes"] <= 4e6 / 8 * 1.5 + 1200
    assert 0 < taken["bytes"] <= sent["bytes"]
