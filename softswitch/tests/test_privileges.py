# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Rights of a switch that is started as root: its own, the user that runs its compiler, and the users that reach it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from kinds import config
from p4runtime_client import connected
from softswitch.build import compiler
from softswitch.build.compiler import Job, compile_here
from softswitch.errors import PipelineError
from softswitch.process import StartError, require_safe_address
from softswitch.settings import Settings, Tls
from testnet import DEADLINE_S, SwitchProcess, needs_root

NETWORK, AND_LOCKED_MEMORY = 0x3000, 0x7000  # CAP_NET_ADMIN and CAP_NET_RAW; with CAP_IPC_LOCK
MIB = 1 << 20
needs_other_users = pytest.mark.skipif(
    not compiler._can_run_as(compiler.compiler_user()),
    reason="SKIPPED: no other user can be taken on: not root, or in a user namespace of one user",
)
PRINT_USER = """#!/bin/sh
echo "$(id -u) $(ulimit -t) $(ulimit -f) $HOME" >&2; exit 1
"""


def status(pid: int | str, thread: str = "") -> dict[str, str]:
    where = Path(f"/proc/{pid}/task/{thread}" if thread else f"/proc/{pid}")
    lines = (line.split(":", 1) for line in (where / "status").read_text().splitlines())
    return {key: value.strip() for key, value in lines}


async def push_a_program(switch: SwitchProcess) -> None:
    async with connected(switch.address, config()):
        pass


REPOSITORY = Path(__file__).resolve().parents[2]
ELSEWHERE = 'mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"'


@pytest.mark.slow
@needs_root[1]
@needs_other_users
@pytest.mark.root
async def test_a_switch_of_root_runs_from_a_home_that_only_its_user_may_enter(
    start_switch, tmp_path: Path
) -> None:
    """Debian's homes are so; without its rights root's process may not go in, either."""
    home = tmp_path / "home"
    repository, captures = home / "netfold", home / "captures"
    for folder in (home, repository, captures):
        folder.mkdir()
    recordings = [captures / f"lo_{way}.pcap" for way in ("in", "out")]
    for file in recordings:  # as `netfold network up` makes them
        file.touch()
    os.chown(captures, compiler.UNPRIVILEGED_UID, compiler.UNPRIVILEGED_UID)
    os.chown(home, compiler.UNPRIVILEGED_UID, compiler.UNPRIVILEGED_UID)
    home.chmod(0o700)
    interpreter = Path(sys.executable)
    if interpreter.is_relative_to(REPOSITORY):
        interpreter = repository / interpreter.relative_to(REPOSITORY)
    python = ("unshare", "-m", "-n", "sh", "-c", ELSEWHERE, REPOSITORY, repository, interpreter)
    files = ("--pcap", captures, "--cache-dir", tmp_path / "cache")
    switch = start_switch(None, *files, "--interface", "1@lo", python=python)
    await push_a_program(switch)
    assert switch.port(1)["interface"] == "lo"
    assert all(file.stat().st_size for file in recordings)


@pytest.fixture
def compiler_user(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A compiler that fails, and prints the user that runs it."""
    with tempfile.TemporaryDirectory() as folder:  # tmp_path is root's alone
        Path(folder).chmod(0o755)
        script = Path(folder, "gcc")
        script.write_text(PRINT_USER)
        script.chmod(0o755)
        monkeypatch.setattr(compiler, "gcc", lambda: str(script))
        yield


@needs_root[1]
@needs_other_users
@pytest.mark.root
@pytest.mark.parametrize(("locked_bytes", "kept"), [("unlimited", NETWORK), (8 * MIB, AND_LOCKED_MEMORY)])
async def test_a_switch_keeps_of_roots_rights_those_of_the_network_in_every_thread(
    locked_bytes: int | str, kept: int, start_switch
) -> None:
    """It keeps the right to lock memory, too, which AF_XDP needs where the bound stays, as in a container."""
    limited = ("prlimit", f"--memlock={locked_bytes}", "setpriv", "--bounding-set=-sys_resource")
    if subprocess.run([*limited, "true"], capture_output=True, check=False).returncode:
        pytest.skip("the bound on locked memory cannot be lifted here")
    switch = start_switch(None, python=(*limited, sys.executable))
    await push_a_program(switch)
    pid = switch.process.pid
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found = status(pid, thread.name)
        assert [int(found[key], 16) for key in ("CapPrm", "CapEff", "CapBnd")] == [kept] * 3
        assert (found["CapInh"], found["CapAmb"], found["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    assert status(child)["Uid"].split()[0] not in ("0", str(os.getuid()))
    assert status(child)["CapEff"] == "0" * 16
    assert switch.stop() == 0
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.slow
@needs_root[1]
@pytest.mark.root
@pytest.mark.parametrize(
    "without_other_users",
    [
        ("unshare", "--user", "--map-root-user"),
        ("setpriv", "--bounding-set=-setuid,-setgid"),
        ("setpriv", "--bounding-set=-all"),
    ],
    ids=["a user namespace of one user", "root that may not change users", "root without any right"],
)
async def test_a_switch_that_can_take_on_no_other_user_compiles_all_the_same(
    without_other_users: tuple[str, ...], start_switch, tmp_path: Path
) -> None:
    if subprocess.run([*without_other_users, "true"], capture_output=True, check=False).returncode:
        pytest.skip("SKIPPED: user namespaces or the bounding set cannot be had here")
    cache = ("--cache-dir", tmp_path / "cache")
    switch = start_switch(None, *cache, python=(*without_other_users, sys.executable))
    await push_a_program(switch)
    assert switch.stop() == 0


@needs_root[1]
@pytest.mark.root
@pytest.mark.parametrize(
    "prefix", [("unshare", "--user", "--map-root-user"), ("setpriv", "--bounding-set=-setuid")]
)
def test_gcc_runs_as_this_user_where_there_is_no_other(prefix: tuple[str, ...]) -> None:
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        pytest.skip("SKIPPED: user namespaces or the bounding set cannot be had here")
    script = """
from softswitch.build.compiler import Job, compile_here
made = compile_here(Job("x", ("-shared", "-fPIC"), {"program.c": "int a(void){return 1;}"}))
assert made[:4] == b"\\x7fELF", made[:4]
"""
    done = subprocess.run(
        [*prefix, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@needs_root[1]
@needs_other_users
@pytest.mark.root
def test_the_compiler_of_a_pushed_program_is_another_user_with_bounds(compiler_user: None) -> None:
    with pytest.raises(PipelineError, match=rf"x: {compiler.compiler_user()} 120 524288 .*softswitch-gcc-"):
        compile_here(Job("x", (), {"program.c": ""}))


@needs_other_users
def test_a_builder_compiles_and_says_what_is_wrong() -> None:
    script = """
import os, sys
from softswitch.build.compiler import CompilerProcess, Job
from softswitch.errors import PipelineError
builder = CompilerProcess()
files = {"program.c": '#include "a.h"\\n', "a.h": "int a(void){return 1;}"}
made = builder.compile(Job("fine", ("-shared", "-fPIC"), files))
assert made[:4] == b"\\x7fELF", made[:4]
try:
    builder.compile(Job("wrong", ("-shared",), {"program.c": "int a("}))
except PipelineError as error:
    assert "gcc failed on wrong" in str(error), error
else:
    sys.exit("was compiled")
builder.close()
builder.close()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_compiler_that_takes_too_long_ends_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(compiler, "GCC_DEADLINE_S", 1)
    mark = tmp_path / "pid"
    with pytest.raises(PipelineError, match="took more than 1 s"):
        compiler.run(["/bin/sh", "-c", f"sleep 1000 & echo $! > {mark}; wait"], "x", folder=tmp_path)
    with contextlib.suppress(ProcessLookupError):  # it is gone already
        ended = os.pidfd_open(int(mark.read_text()))
        try:
            assert select.select([ended], [], [], DEADLINE_S)[0], "it lives on"
        finally:
            os.close(ended)


@pytest.mark.parametrize("address", ["0.0.0.0:1", "[::]:1", "10.1.2.3:9559", "switch.example:9559", "*:1"])
def test_an_address_that_others_reach_needs_tls_or_a_word(address: str, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="--insecure-remote"):
        require_safe_address(Settings(tmp_path, address=address))
    require_safe_address(Settings(tmp_path, address=address, insecure_remote=True))
    require_safe_address(Settings(tmp_path, address=address, tls=Tls(tmp_path, tmp_path)))


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "unix:/run/x"])
def test_an_address_of_this_machine_needs_neither(address: str, tmp_path: Path) -> None:
    require_safe_address(Settings(tmp_path, address=address))
