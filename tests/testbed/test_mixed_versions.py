# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Jobs of which some members run a version without targets: all calls are sums, or go by Gloo, at all alike. That
version is built from the history."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from netfold.testbed.processes import ProcessGroup
from netfold.testbed.testbed import Testbed
from netfold.testbed.torchrun import TORCH_PYTHON, TorchProgram, torchrun_tasks
from tests.history import REPOSITORY, WITHOUT_TARGETS, tree_of
from tests.testbed.counting_ranks import ranks_of, stop_file, until_more_calls
from tests.testbed.test_scenarios import RESTARTED

RANK = Path(__file__).with_name("mixed_rank.py")
HOSTS = ("h1", "h2", "h5", "h6")
WAIT_S = 400.0
CALLS = 20

pytestmark = [pytest.mark.root, pytest.mark.mininet, pytest.mark.slow, pytest.mark.timeout(1000)]


@pytest.fixture(scope="session")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tree_of(WITHOUT_TARGETS, tmp_path_factory.mktemp("old"))


@pytest.mark.skipif(not TORCH_PYTHON.exists(), reason="SKIPPED: needs PyTorch in .venv-torch")
@pytest.mark.parametrize("restarts", [0, 1])
def test_ranks_of_two_versions_make_the_same_calls(old: Path, restarts: int):
    """Both versions once have rank 0, which decides for all. With restarts, for which the older keeps no job, it is the
    newer one."""
    with Testbed(target="softswitch", lanes=64, name="mixv", first_grpc_port=20200) as system:
        addresses = {host: system.address(host) for host in HOSTS}
        for number, trees in enumerate([(old, REPOSITORY), (REPOSITORY, old)][restarts:]):
            folder = system.directory / f"ranks{number}"
            folder.mkdir()
            is_explained, tasks = folder / "explained", []
            for place, tree in enumerate(trees):
                arguments = ("--until", is_explained)
                environment = {"PYTHONPATH": str(tree), "PET_MAX_RESTARTS": str(restarts)}
                program = TorchProgram(RANK, arguments, 1, environment, "--out")
                every = torchrun_tasks(program, addresses, folder, 29761 + number)
                tasks += every[2 * place : 2 * place + 2]
            with ProcessGroup(system.net, tasks) as ranks:
                results = ranks.wait(WAIT_S, partial(_look, system, is_explained))
            assert is_explained.exists()
            assert [results[host]["wrong"] for host in HOSTS] == [[]] * len(HOSTS)
            packages = [results[host]["package"] for host in HOSTS]
            assert packages == [str(tree) for tree in trees for _ in range(2)]


def test_python_workers_of_two_versions_make_the_same_sums(old: Path, tmp_path: Path):
    """Also after the restart of a switch, when they find out which calls all have made."""
    others = dict.fromkeys(HOSTS[:2], ("env", f"PYTHONPATH={old}"))
    with Testbed(
        target="softswitch", lanes=64, name="mixp", first_grpc_port=20440, controller_options=RESTARTED
    ) as system:
        system.submit("mixed", None, HOSTS, scheme="switchml")
        with ranks_of(
            system.net, system.controller.address, "mixed", HOSTS, tmp_path, prefixes=others
        ) as ranks:
            until_more_calls(tmp_path, ["mixed"], CALLS, system.check)
            why = "\n".join(system.controller.explain("mixed"))
            system.net.switches["leaf1"].restart()
            until_more_calls(tmp_path, ["mixed"], CALLS, system.check)
            stop_file(tmp_path).touch()
            results = ranks.wait(WAIT_S, system.check)
    assert _names_old_worker(why)
    assert [results[host]["wrong"] for host in HOSTS] == [[]] * len(HOSTS)
    packages = [results[host]["package"] for host in HOSTS]
    assert packages == [str(tree) for tree in (old, REPOSITORY) for _ in range(2)]


def _look(system: Testbed, is_explained: Path) -> None:
    """Touches the file when the explanation of the running job names the worker that does not know targets."""
    system.check()
    for name, job in system.jobs().items():
        text = "\n".join(system.controller.explain(name)) if job.state == "running" else ""
        if _names_old_worker(text):
            is_explained.touch()


def _names_old_worker(text: str) -> bool:
    return "so all its calls are sums: the worker of" in text and "does not know targets" in text
