# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold run` and `netfold measure plans` from the outside: how they fail, and whose their files are."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from netfold.evaluation.testbed.cli import app as measure
from netfold.protocol.environment import Variable
from netfold.protocol.runtime import is_only_user, is_root
from netfold.testbed import cli
from netfold.testbed.errors import RunError
from netfold.testbed.network import isolation
from netfold.testbed.network.modes import ModeChoice, NetworkMode
from netfold.testbed.run import Run, RunObserver, RunOptions
from netfold.testbed.testbed import Testbed

COMMANDS = [
    (cli.run, ["--target", "softswitch"]),
    (measure, ["plans", "inart-fig1", "--target", "softswitch"]),
]


@pytest.fixture
def user_without_namespaces(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {NetworkMode.ROOTLESS: "No space left on device (sysctl user.max_user_namespaces is 0)"}
    monkeypatch.delenv(Variable.NAMESPACE)
    monkeypatch.delenv(Variable.NETWORK_MODE, raising=False)  # make test runs in the user's own namespaces
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(isolation, "choose", lambda wanted: ModeChoice(None, refused))


@pytest.mark.usefixtures("user_without_namespaces")
@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=["run", "measure"])
def test_without_any_right_one_line_names_the_setting(command, arguments, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    result = CliRunner().invoke(command, [*arguments, "--network", "rootless"])
    assert result.exit_code == 1
    lines = [line for line in result.output.splitlines() if line.startswith("netfold: ")]
    assert len(lines) == 1
    assert "user.max_user_namespaces is 0" in lines[0]


@pytest.mark.usefixtures("user_without_namespaces")
@pytest.mark.parametrize(("command", "arguments"), COMMANDS, ids=["run", "measure"])
def test_where_user_namespaces_are_forbidden_it_runs_itself_through_sudo_and_says_why(
    command, arguments, monkeypatch: pytest.MonkeyPatch
):
    ran: list[list[str]] = []

    def execv(path: str, command: list[str]) -> None:
        ran.append(command)
        raise SystemExit(7)

    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("os.execv", execv)
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 7, result.output
    assert [c[0] for c in ran] == ["/usr/bin/sudo"]
    assert "user.max_user_namespaces is 0" in result.output


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["no-such-fabric"], 2, "no-such-fabric"),
        (["--target", "nonsense"], 1, "no switch target"),
        (["--restart", "leaf9"], 1, "'leaf9' is no switch of leaf-spine-2x2; expected one of leaf1"),
        (["--loss", "2"], 1, "loss is 2.0"),
    ],
)
def test_bad_input_is_one_line(arguments, code, says, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.geteuid", lambda: 0)
    result = CliRunner().invoke(cli.run, arguments)
    assert result.exit_code == code
    assert says in next(line for line in result.output.splitlines() if line.startswith("netfold: "))


@pytest.mark.parametrize(
    ("children", "arguments", "lanes"),
    [(4, [], 256), (33, [], 64), (256, [], 64), (4, ["--lanes", "32"], 32)],
)
def test_a_run_has_the_lanes_of_the_program_that_takes_the_children(
    children: int, arguments: list[str], lanes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a controller without --lanes."""
    fabric = tmp_path / "wide.yaml"
    fabric.write_text(
        f"name: wide\ndefaults: {{link: {{rate: 100}}, switch: {{capacity: 900, children: {children}}}}}\n"
        "switches: {s1: {}}\nhosts: {h1: {at: s1}, h2: {at: s1}}\n"
    )
    seen: list[int] = []

    def refuse(options: RunOptions, observer: RunObserver) -> Run:
        seen.append(options.testbed().lanes)
        raise RunError("seen")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("netfold.testbed.run.Run", refuse)
    result = CliRunner().invoke(cli.run, [str(fabric), *arguments])
    assert (result.exit_code, seen) == (1, [lanes]), result.output


@pytest.fixture
def by_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of the user of sudo."""
    if is_only_user() or not is_root():
        pytest.skip("SKIPPED: needs root, and other users")
    monkeypatch.setenv("SUDO_UID", "12345")
    monkeypatch.setenv("SUDO_GID", "12346")
    for folder in (tmp_path, *tmp_path.parents):
        folder.chmod(folder.stat().st_mode | 0o001)
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 12345, 12346)
    return home


def a_run(out: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """One that is over."""
    run = Run(RunOptions(partial(Testbed, "single"), out=out), RunObserver())
    run._check_out()
    run._plan, run._loads = (None, None)  # type: ignore[assignment]
    monkeypatch.setattr("netfold.testbed.run.fabric_plot", lambda *_: None)
    monkeypatch.setattr("netfold.testbed.run.render", lambda _, form: form.encode())
    run.write(SimpleNamespace(to_json=lambda: "{}"))  # type: ignore[arg-type]
    return run


def test_what_a_run_under_sudo_wrote_is_the_users_and_nothing_else_changes_hands(
    by_sudo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = by_sudo / "deep" / "out"
    a_run(out, monkeypatch)
    made = (out.parent, out, out / "run.json", out / "fabric.png", out / "fabric.svg")
    assert [(p.stat().st_uid, p.stat().st_gid) for p in made] == [(12345, 12346)] * 5
    others = out / "others.txt"
    others.touch()
    a_run(out, monkeypatch)
    assert others.stat().st_uid == 0, "it was there before and is none of this run's"


def test_the_logs_of_a_failed_run_stay(tmp_path: Path) -> None:
    run = Run(RunOptions(partial(Testbed, "single"), out=tmp_path / "out"), RunObserver())
    work = tmp_path / "work"
    (work / "training").mkdir(parents=True)
    (work / "training" / "h7.log").write_text("the call took more than 60 s")
    (work / "training" / "h7.json").write_text("{}")
    run.system = SimpleNamespace(directory=work)  # type: ignore[assignment]
    assert run.failure_notes() == ""
    with pytest.raises(RunError), run._kept_logs():
        raise RunError("h7 ended")
    logs = tmp_path / "out" / "logs"
    assert [p.relative_to(logs).as_posix() for p in logs.rglob("*.*")] == ["training/h7.log"]
    assert (logs / "training/h7.log").read_text() == "the call took more than 60 s"
    assert run.failure_notes() == f"logs: {logs}"


def test_a_link_in_the_way_leads_root_nowhere(by_sudo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = by_sudo.parent / "secret"
    secret.write_text("root's")
    secret.chmod(0o600)
    (by_sudo / "run.json").symlink_to(secret)
    with pytest.raises(RunError, match=r"run\.json cannot be written: Permission denied"):
        a_run(by_sudo, monkeypatch)
    assert secret.read_text() == "root's"
    assert secret.stat().st_uid == 0


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run.json").symlink_to("/dev/full")
    with pytest.raises(RunError, match=r"run\.json cannot be written: No space left on device"):
        a_run(tmp_path, monkeypatch)


@pytest.mark.parametrize(("ending", "code"), [(KeyboardInterrupt(), 130), (SystemExit(143), 143)])
def test_an_interrupted_run_says_where(
    ending: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def execute(run: Run) -> None:
        run.observer.on_step("training: a job of 4 workers")
        raise ending

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(Run, "execute", execute)
    result = CliRunner().invoke(cli.run, [])
    assert result.exit_code == code
    expected = (
        "netfold: interrupted (training: a job of 4 workers): the network is down, and no file was written"
    )
    assert expected in result.output.splitlines()
