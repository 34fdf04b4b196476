# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Failures outside the program: no compiler, a full disk, a huge device config, clients that vanish; and how a switch
that does not start is reported."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import grpc
import pytest
from grpc._cython import cygrpc
from kinds import config
from running import PROGRAMS
from softswitch.build.compiler import Job
from softswitch.build.native import build_shared, default_cache_dir
from softswitch.engine.abi import engine_library
from softswitch.errors import PipelineError
from softswitch.logs import shorten_grpc_tracebacks
from softswitch.p4runtime.device import device_json, load_pipeline
from softswitch.p4runtime.status import Code, StatusError
from softswitch.testing import simple_switch
from softswitch.testing.simple_switch import free_port


def test_without_a_compiler_the_switch_ends_with_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from softswitch.cli import main; main()", PROGRAMS / "wire.json"]
    environment = {**os.environ, "CC": "no-such-compiler", "SOFTSWITCH_CACHE": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("softswitch: no C compiler: 'no-such-compiler' is not on PATH"), done.stderr
    assert "Traceback" not in done.stderr


def test_a_compile_error_is_one_line_with_the_first_error(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int f(void) {\n    return IP_ADDRESSES + more;\n}\n")
    with pytest.raises(PipelineError) as failed:
        build_shared([source], tmp_path / "cache", name="wrong")
    assert re.fullmatch(
        r"gcc failed on wrong-\w+\.so: \S*wrong\.c:2:12: error: .IP_ADDRESSES. undeclared.*",
        str(failed.value),
    )


def test_a_full_disk_at_a_push_is_resource_exhausted(tmp_path: Path) -> None:
    def compile_on_a_full_disk(job: Job) -> bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(StatusError, match="No space left on device") as refused:
        load_pipeline(config("wire"), tmp_path, compile_c=compile_on_a_full_disk)
    assert refused.value.code is Code.RESOURCE_EXHAUSTED
    assert str(tmp_path) in refused.value.message


@pytest.mark.parametrize("byte", [b" ", b"a", b'"'])
def test_a_large_device_config_that_is_no_program_is_read_in_linear_time(byte: bytes) -> None:
    """A JSON string, or spaces: as a protobuf message a million of fields."""
    start = time.process_time()
    device_json(byte * (16 << 20))
    assert time.process_time() - start < 2


def test_an_error_inside_grpc_is_logged_in_one_line() -> None:
    def record(error: BaseException) -> logging.LogRecord:
        info = (type(error), error, None)
        return logging.LogRecord(
            "grpc._cython.cygrpc", logging.ERROR, "", 0, "Unexpected in %s", ("Write",), info
        )

    theirs = record(cygrpc.UsageError("RPC already finished"))
    assert shorten_grpc_tracebacks(theirs)
    assert theirs.exc_info is None
    assert theirs.getMessage() == "Unexpected in Write: UsageError: RPC already finished"
    canceled = record(asyncio.CancelledError())
    assert shorten_grpc_tracebacks(canceled)
    assert canceled.exc_info is None
    trace = "Traceback (most recent call last):\n  File x\nasyncio.exceptions.CancelledError"
    stopped = f"Unexpected in Write: CancelledError: \n{trace}"
    written = logging.LogRecord("grpc._cython.cygrpc", logging.ERROR, "", 0, stopped, (), None)
    assert shorten_grpc_tracebacks(written)
    assert written.getMessage() == "Unexpected in Write: CancelledError: "
    raised = record(asyncio.CancelledError(f"\n{trace}"))
    assert shorten_grpc_tracebacks(raised)
    assert raised.getMessage() == "Unexpected in Write: CancelledError: "
    ours = record(KeyError("x"))
    assert shorten_grpc_tracebacks(ours)
    assert ours.exc_info is not None


def test_clients_that_are_killed_leave_no_traceback_and_the_switch_serves_the_next(start_switch) -> None:
    """Each client is killed in the middle of reads, writes, a push and its stream."""
    switch = start_switch(None)
    for election_id in range(1, 4):
        script = Path(__file__).with_name("vanishing_client.py")
        command = [sys.executable, script, switch.address, str(election_id)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
            try:
                assert client.stdout is not None
                assert client.stdout.readline() == "a round\n"
            finally:
                client.kill()
    assert switch.stop() == 0
    assert "Traceback" not in switch.log(), switch.log()


ENDLESS_COMPILER = """#!/bin/sh
case "$*" in
*-dump*) exec gcc "$@" ;;
*{waits_at}*) touch "$TMPDIR/part.s"; echo compiles >{news}; exec sleep 1000 ;;
esac
exec gcc "$@"
"""


@pytest.mark.slow
@pytest.mark.parametrize("waits_at", ["engine", "program.c"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda n: n.name)
def test_a_switch_that_is_stopped_while_it_compiles_leaves_no_part_of_that(
    waits_at: str, number: signal.Signals
) -> None:
    with tempfile.TemporaryDirectory() as name:  # below a folder that gcc's own user reaches
        folder, cache, temporary = Path(name), Path(name, "cache"), Path(name, "temporary")
        folder.chmod(0o755)
        cache.mkdir()
        engine_library(default_cache_dir())
        for made in default_cache_dir().iterdir():
            if made.name.startswith(("core-", "engine-")) and not made.name.startswith(waits_at):
                shutil.copy(made, cache)
        temporary.mkdir()
        temporary.chmod(0o1777)
        news, gcc = folder / "news", folder / "gcc.sh"
        os.mkfifo(news)
        news.chmod(0o666)
        gcc.write_text(ENDLESS_COMPILER.format(waits_at=waits_at, news=news))
        gcc.chmod(0o755)
        command = [sys.executable, "-c", "from softswitch.cli import main; main()", PROGRAMS / "wire.json"]
        environment = {
            **os.environ,
            "CC": str(gcc),
            "SOFTSWITCH_CACHE": str(cache),
            "TMPDIR": str(temporary),
        }
        with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as switch:
            try:
                assert news.read_text() == "compiles\n"
                switch.send_signal(number)
                _, errors = switch.communicate(timeout=30)
            finally:
                switch.kill()
        assert "Traceback" not in errors
        left = {p.name for p in (*cache.rglob("*"), *temporary.iterdir())}
        assert {n for n in left if not n.startswith(("core-", "engine-"))} == set()


@pytest.mark.parametrize("then", ["exit 3", "exec sleep 60"])
def test_a_failed_start_is_reported_with_the_end_of_the_log(then: str, tmp_path: Path):
    log = tmp_path / "log"
    with log.open("wb") as output:
        program = ["sh", "-c", f"echo its port is taken >&2; echo; {then}"]
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=output)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with (
            grpc.insecure_channel(f"127.0.0.1:{free_port()}") as channel,
            pytest.raises(simple_switch.SwitchDiedError, match="its port is taken"),
        ):
            simple_switch.wait_until_ready(process, channel, log, start_s=0.5)
    finally:
        process.kill()
        process.wait()
