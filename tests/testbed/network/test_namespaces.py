# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Commands in namespaces of their own: what they see, how they end, and that nothing is left, whichever process is
killed; as root, as root without rights, and as a user."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netfold.protocol.environment import Variable
from netfold.testbed.network.modes import NetworkMode, choose, try_mode
from netfold.testbed.network.namespaces import identity
from netfold.testbed.network.state import RunDirectory
from tests.testbed.network.conftest import new_place

DEADLINE_S = 60
HOLDER = [sys.executable, "-P", "-m", "netfold.testbed.network.holder"]
WITHOUT_NAMESPACES = ["setpriv", "--bounding-set=-all", "--"]
ROOT_WITHOUT_SYS_ADMIN = ["setpriv", "--bounding-set=-sys_admin", "--"]
SLEEPER = "import signal, sys, time; print('up', flush=True); time.sleep(1000)"
CLEANER = """
import os, signal, sys, time
def leave(number, frame):
    os.write(1, f"left {number}\\n".encode())
    sys.exit(7)
signal.signal(signal.SIGTERM, leave)
signal.signal(signal.SIGHUP, leave)
os.write(1, b"up\\n")  # print is not reentrant: the signal may come before it has returned
time.sleep(1000)
"""
DETACHED = (
    "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True); print('up', flush=True)"
)


def works(mode: NetworkMode) -> bool:
    return (os.geteuid() == 0 or mode is not NetworkMode.MININET) and try_mode(mode) is None


NAMESPACES = [
    pytest.param(w, marks=pytest.mark.skipif(not works(w), reason=f"SKIPPED: {w} does not work here"))
    for w in (NetworkMode.MININET, NetworkMode.ROOTLESS)
]
namespaces = pytest.mark.parametrize("mode", NAMESPACES)
modes = pytest.mark.parametrize("mode", [*NAMESPACES, NetworkMode.USERLAND])
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="SKIPPED: needs root, to give up rights")


@dataclass(frozen=True)
class Held:
    """A running holder of the network `name`."""

    name: str
    process: subprocess.Popen[str]

    def line(self) -> str:
        assert self.process.stdout is not None
        assert select.select([self.process.stdout], [], [], DEADLINE_S)[0], "no output in time"
        return self.process.stdout.readline().strip()

    @property
    def processes(self) -> list[int]:
        """As numbered here, all below the holder."""
        found, pending = [], [self.process.pid]
        while pending:
            pid = pending.pop()
            found.append(pid)
            pending += map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
        return found


@pytest.fixture
def name() -> str:
    return new_place().name


def hold(name: str, mode: NetworkMode, script: str, terminal: int | None = None) -> Held:
    """`terminal`: the holder is the first process there, as in a window that is opened for one command."""
    opened = [] if terminal is None else ["setsid", "--ctty"]
    command = [*opened, *HOLDER, "create", name, mode, sys.executable, "-c", script]
    held = Held(name, subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE, text=True))
    assert held.line() == "up"
    return held


def run(*command: object, prefix: tuple[str, ...] | list[str] = ()) -> subprocess.CompletedProcess[str]:
    words = [*prefix, *HOLDER, *map(str, command)]
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


@pytest.fixture
def held_processes() -> Iterator[list[int]]:
    """Descriptors of processes that must have ended at the test's end."""
    descriptors: list[int] = []
    yield descriptors
    try:
        for descriptor in descriptors:
            assert select.select([descriptor], [], [], DEADLINE_S)[0], "a process lives on"
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def leftovers(name: str) -> list[str]:
    return [str(p) for p in RunDirectory(name).path.glob("*")]


@namespaces
def test_a_command_is_root_in_a_network_that_is_empty(mode: NetworkMode, name: str) -> None:
    script = "id -u; ls /sys/class/net; cat /sys/class/net/lo/operstate; ls /proc | grep -c '^[0-9]'; exit 3"
    done = run("create", name, mode, "sh", "-c", script)
    assert done.returncode == 3
    user, *interfaces, _, processes = done.stdout.split()
    assert (user, interfaces) == ("0", ["lo"])
    assert int(processes) < 10, "processes of others are seen"
    assert leftovers(name) == []


IN_ANOTHER_NAMESPACE = """
import subprocess
from netfold.testbed.network import kernel
from netfold.testbed.network.state import delete_interfaces, interfaces_of
for _ in range(2):
    kernel.create_veth_pairs([kernel.VethPair("seen1-1", "seen1-2")], 1500)
    assert kernel.is_up("seen1-1") and kernel.byte_counts()["seen1-1"][1] >= 0
    subprocess.run(["ip", "link", "set", "seen1-2", "down"], check=True)
    assert not kernel.is_up("seen1-1")
    found = interfaces_of("seen")
    assert sorted(found) == ["seen1-1", "seen1-2"], found
    delete_interfaces(found)
"""


@namespaces
def test_links_are_found_in_a_namespace_whose_sys_is_another_ones(mode: NetworkMode, name: str) -> None:
    """As in `unshare --net`: links that stay are in the way of the next network."""
    done = run("create", name, mode, "unshare", "--net", sys.executable, "-c", IN_ANOTHER_NAMESPACE)
    assert done.returncode == 0, done.stderr


@modes
def test_files_belong_to_the_user(mode: NetworkMode, name: str, tmp_path: Path) -> None:
    assert run("create", name, mode, "touch", tmp_path / "made").returncode == 0
    assert (tmp_path / "made").stat().st_uid == os.geteuid()


@modes
@pytest.mark.parametrize("victim", [0, 1, 2], ids=["holder", "first process", "command"])
def test_nothing_is_left_whichever_process_is_killed(
    mode: NetworkMode, victim: int, name: str, held_processes: list[int]
) -> None:
    held = hold(name, mode, SLEEPER)
    (RunDirectory(name).path / "x.sock").touch()
    chain = held.processes
    assert len(chain) == 3
    held_processes += [os.pidfd_open(pid) for pid in chain]
    os.kill(chain[victim], signal.SIGKILL)
    assert held.process.wait(DEADLINE_S) in (-signal.SIGKILL, 128 + signal.SIGKILL)
    for descriptor in held_processes:
        select.select([descriptor], [], [], DEADLINE_S)
    assert {Path(p).name for p in leftovers(name)} <= {"holder.json", "logs"}
    assert run("create", name, mode, "true").returncode == 0, "the next is hindered"
    assert leftovers(name) == []


@modes
def test_a_signal_reaches_the_command_which_cleans_up(mode: NetworkMode, name: str) -> None:
    held = hold(name, mode, CLEANER)
    held.process.terminate()
    assert held.line() == "left 15"
    assert held.process.wait(DEADLINE_S) == 7
    assert leftovers(name) == []


@modes
def test_a_command_cleans_up_when_its_terminal_is_closed(mode: NetworkMode, name: str) -> None:
    window, terminal = os.openpty()
    try:
        held = hold(name, mode, CLEANER, terminal)
        os.close(terminal)
    finally:
        os.close(window)
    assert held.line() == "left 1"
    assert held.process.wait(DEADLINE_S) == 7
    assert leftovers(name) == []


@modes
def test_a_command_cleans_up_even_if_its_holder_is_killed(
    mode: NetworkMode, name: str, held_processes: list[int]
) -> None:
    held = hold(name, mode, CLEANER)
    held_processes += [os.pidfd_open(pid) for pid in held.processes]
    held.process.kill()
    assert held.line() == "left 15"


@modes
@pytest.mark.slow
def test_the_name_of_a_killed_holder_is_free_once_its_command_has_left(mode: NetworkMode, name: str) -> None:
    held = hold(name, mode, CLEANER)
    held.process.kill()
    held.process.wait(DEADLINE_S)
    assert run("create", name, mode, "true").returncode == 0
    assert leftovers(name) == []


@modes
def test_what_a_command_has_detached_ends_with_it(mode: NetworkMode, name: str) -> None:
    held = hold(name, mode, DETACHED)
    assert held.process.stdout is not None
    assert held.process.wait(DEADLINE_S) == 0
    assert select.select([held.process.stdout], [], [], DEADLINE_S)[0]
    assert held.process.stdout.read() == "", "it lives on: it has the output open"


@modes
def test_a_second_command_enters_by_name(mode: NetworkMode, name: str, tmp_path: Path) -> None:
    held = hold(name, mode, SLEEPER)
    try:
        inside = [sys.executable, "-c", f"import os; print(os.getcwd(), os.environ['{Variable.NAMESPACE}'])"]
        words = [*HOLDER, "enter", name, *inside]
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        folder, number = done.stdout.split()
        assert folder == str(tmp_path)
        recorded = json.loads((RunDirectory(name).path / "holder.json").read_text())
        assert int(number) == recorded["net"]
        assert (recorded["net"] == identity("net")) == (mode is NetworkMode.USERLAND)
        assert run("enter", name, "sh", "-c", "kill -TERM $$").returncode == 128 + signal.SIGTERM
    finally:
        held.process.terminate()
        held.process.wait(DEADLINE_S)
    assert "is not up" in run("enter", name, "true").stderr


@modes
def test_one_network_of_a_name_and_many_of_others(mode: NetworkMode, name: str) -> None:
    held = hold(name, mode, SLEEPER)
    try:
        refused = run("create", name, mode, "true")
        assert refused.returncode == 1
        assert f"netfold network down --name {name}" in refused.stderr
        assert run("create", new_place().name, mode, "true").returncode == 0
    finally:
        held.process.terminate()
        held.process.wait(DEADLINE_S)


TRIAL = "from netfold.testbed.network.modes import choose; c = choose(); print(c.mode, *c.refused.values(), sep='|')"


@needs_root
@pytest.mark.root
def test_root_without_rights_takes_a_user_namespace(name: str) -> None:
    if not works(NetworkMode.ROOTLESS):
        pytest.skip("SKIPPED: rootless does not work here")
    done = subprocess.run(
        [*ROOT_WITHOUT_SYS_ADMIN, sys.executable, "-c", TRIAL],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    mode, reason = done.stdout.strip().split("|")
    assert mode == NetworkMode.ROOTLESS
    assert "CAP_SYS_ADMIN" in reason


@needs_root
@pytest.mark.root
def test_where_nothing_works_the_reasons_are_named() -> None:
    done = subprocess.run(
        [*WITHOUT_NAMESPACES, sys.executable, "-c", TRIAL],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    mode, as_root, as_user = done.stdout.strip().split("|")
    assert mode == "None"
    assert "CAP_SYS_ADMIN" in as_root
    assert "CAP_SETFCAP" in as_user


@needs_root
@pytest.mark.root
def test_a_host_without_a_namespace_is_an_error_and_no_hang() -> None:
    """Mininet issue 529: it waits for a shell that has ended."""
    script = """
from netfold.testbed.network.emulated_network import EmulatedNetwork
from netfold.testbed.network.errors import NamespaceError
from netfold.topologies.spec import load_fabric
try:
    EmulatedNetwork(load_fabric("single"), target="softswitch").start()
except NamespaceError as error:
    print(error)
"""
    done = subprocess.run(
        [*ROOT_WITHOUT_SYS_ADMIN, sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert "mnexec" in done.stdout
    assert "Operation not permitted" in done.stdout


def test_the_choice_names_what_was_refused_before() -> None:
    choice = choose()
    assert (choice.mode is None) == (not works(NetworkMode.ROOTLESS) and not works(NetworkMode.MININET))


IN_A_PROCESS_WITH_THREADS = """
from concurrent.futures import ThreadPoolExecutor
import grpc
from netfold.testbed.network.modes import NetworkMode, try_mode
server = grpc.server(ThreadPoolExecutor(2))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    grpc.channel_ready_future(channel).result(timeout=30)
    print(*(try_mode(NetworkMode.ROOTLESS) for _ in range(3)), sep="|")
server.stop(None)
"""


def test_the_trial_is_the_same_in_a_process_with_threads_of_libraries() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS_WITH_THREADS],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout.strip().split("|") == [str(try_mode(NetworkMode.ROOTLESS))] * 3


@pytest.mark.skipif(choose().mode is None, reason="SKIPPED: no namespaces here")
def test_two_test_runs_see_nothing_of_each_other(tmp_path: Path) -> None:
    see = 'ls "$NETFOLD_RUN_DIR"; mkdir "$NETFOLD_RUN_DIR/nf"; readlink /proc/self/ns/net; read line'
    outside = {k: v for k, v in os.environ.items() if k != Variable.NAMESPACE}
    runs = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", "netfold.testbed.network.isolated", "sh", "-c", see],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**outside, "NETFOLD_RUN_DIR": str(tmp_path)},
        )
        for _ in range(2)
    ]  # fmt: skip
    seen = {Held("", run).line() for run in runs}
    for run in runs:
        run.communicate("\n", timeout=DEADLINE_S)
    assert len(seen - {f"net:[{identity('net')}]"}) == 2, "two networks, and no file before them"
    assert [run.returncode for run in runs] == [0, 0]
    assert not list(tmp_path.iterdir()), "nothing is left"
