# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""`netfold deploy controller`: systemd takes the units, etcd its options, and the controller its own."""

from __future__ import annotations

import contextlib
import errno
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from click.testing import Result
from softswitch.testing.simple_switch import free_port
from typer.testing import CliRunner

from netfold.controller.jobs.etcd_client import EtcdAddress
from netfold.controller.jobs.etcd_engine import EtcdEngine
from netfold.controller.operator.controller_files import CA, CERT, KEY
from netfold.controller.operator.deploy_commands import BAD_INPUT, FAILED, app
from netfold.controller.operator.server_files import SETTINGS
from netfold.evaluation.speed.etcd_cluster import until_it_answers
from tests.controller.test_server_files import TIMEOUT_S, executable
from tests.traffic.tls import make_certificate

NAMES = ("ctl1", "ctl2", "ctl3")


def deploy(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["controller", *map(str, arguments)])


def deployed(out: Path, member: str, *arguments: object) -> str:
    """The output of a deployment below `out`."""
    result = deploy("--members", ",".join(NAMES), "--member", member, "--out", out, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def words(out: Path, unit: str) -> list[str]:
    """The command of a unit."""
    text = (out / f"etc/systemd/system/{unit}.service").read_text()
    (command,) = (line for line in text.splitlines() if line.startswith("ExecStart="))
    return command.partition("=")[2].split()


def option(command: list[str], name: str) -> str:
    return command[command.index(f"--{name}") + 1]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="SKIPPED: systemd-analyze is not on PATH")
def test_systemd_takes_the_units(tmp_path: Path):
    deployed(tmp_path, "ctl1")
    executable(tmp_path / "opt/netfold/bin/netfold")
    executable(tmp_path / "usr/bin/etcd")
    units = tmp_path / "etc/systemd/system"
    for unit in ("netfold-etcd.service", "netfold-controller.service"):
        text = (units / unit).read_text()
        for folder in ("/opt/netfold/bin", "/usr/bin/etcd"):
            text = text.replace(f"={folder}", f"={tmp_path}{folder}")
        (units / unit).write_text(text)
        command = ["systemd-analyze", "verify", "--man=no", str(units / unit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        complaints = [line for line in done.stderr.splitlines() if "netfold-" in line]
        assert (done.returncode, complaints) == (0, []), done.stderr


def test_each_machine_calls_its_own_etcd_first(tmp_path: Path):
    for name in NAMES:
        deployed(tmp_path / name, name, "--", "--identities", "/etc/netfold/identities")
    found = [words(tmp_path / name, "netfold-controller") for name in NAMES]
    stores = [EtcdAddress.of(option(command, "state")) for command in found]
    assert [store.members[0] for store in stores] == [f"{name}:2379" for name in NAMES]
    assert len({frozenset(store.members) for store in stores}) == 1
    assert {(store.prefix, store.ca, store.cert, store.key) for store in stores} == {
        ("netfold", CA, CERT, KEY)
    }
    assert [option(command, "listen") for command in found] == [f"{name}:9600" for name in NAMES]
    assert {option(command, "identities") for command in found} == {"/etc/netfold/identities"}


def test_the_members_of_etcd_take_their_options_and_find_each_other(tmp_path: Path):
    """On ports of this test, and at one machine."""
    if (etcd := shutil.which("etcd")) is None:
        pytest.skip("SKIPPED: needs etcd on PATH")
    tls = make_certificate(tmp_path, "localhost")
    ports = {name: (free_port(), free_port()) for name in NAMES}
    for own, file in ((CA, tls.certificate), (CERT, tls.certificate), (KEY, tls.key)):
        shutil.copy(file, tmp_path / own.name)
    with contextlib.ExitStack() as stack:
        for name in NAMES:
            deployed(tmp_path / name, name)
            command = " ".join(words(tmp_path / name, "netfold-etcd")[1:])
            for peer, (client_port, peer_port) in ports.items():
                command = command.replace(f"https://{peer}:2379", f"https://localhost:{client_port}")
                command = command.replace(f"https://{peer}:2380", f"https://localhost:{peer_port}")
            for port, own_port in zip((2379, 2380), ports[name], strict=True):
                command = command.replace(f"0.0.0.0:{port}", f"127.0.0.1:{own_port}")
            command = command.replace("%d/", f"{tmp_path}/").replace("/var/lib/", f"{tmp_path}/{name}/")
            with (tmp_path / f"{name}.log").open("wb") as log:
                process = subprocess.Popen([etcd, *command.split()], stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)
        members = ",".join(f"localhost:{client}" for client, _ in ports.values())
        files = "&".join(
            f"{what}={tmp_path / own.name}" for what, own in (("ca", CA), ("cert", CERT), ("key", KEY))
        )
        state = f"etcd://{members}/netfold?{files}"
        until_it_answers(state, tmp_path / "ctl1.log")
        with contextlib.closing(EtcdEngine(EtcdAddress.of(state))) as engine:
            found = engine.users().members
        assert [(member.fault, bool(member.version)) for member in found] == [("", True)] * len(NAMES)
        assert sum(member.leads for member in found) == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--members", "ctl1,ctl2"), "expected 3, 5 or 7 different names"),
        (("--members", "ctl1,ctl2,ctl1"), "expected 3, 5 or 7 different names"),
        (("--members", "ctl1,ctl 2,ctl3"), "'ctl 2' is no name of a machine"),
        (("--members", "ctl1,ctl2,ctl3:2379"), "'ctl3:2379' is no name of a machine"),
        (("--members", "ctl1,ctl2,%d"), "'%d' is no name of a machine"),
        (("--members", "ctl1,ctl2,a..b"), "'a..b' is no name of a machine"),
        (("--members", "ctl1,ctl2,CTL1"), "expected 3, 5 or 7 different names"),
        (("--members", ",".join(NAMES), "undo"), "'undo': expected an option of `netfold controller run`"),
        (("--members", ",".join(NAMES), "--", "--state=/a.db"), "--state: the unit has this option already"),
        (("--members", ",".join(NAMES), "--", "--lanes", "32", "--listen", "a:1"), "--listen: the unit has"),
        (("--members", ",".join(NAMES), "--member", "ctl4"), "--member ctl4: expected --member with one of ctl1"),
        (("--members", ",".join(NAMES), "--", "--record", "/var/my file"), "'/var/my file': expected a word"),
        (("--members", ",".join(NAMES), "--", "--record", "%h"), "'%h': expected a word"),
        (("--undo",), "expected --out DIR"),
    ],
)  # fmt: skip
def test_what_cannot_be_deployed_is_refused(arguments: tuple[str, ...], reason: str, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "ctl1")
    result = deploy(*arguments)
    assert (result.exit_code, reason in " ".join(result.output.split())) == (BAD_INPUT, True), result.output


def test_a_machine_of_another_name_has_to_be_named(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "laptop")
    result = deploy("--members", ",".join(NAMES))
    assert result.exit_code == BAD_INPUT
    assert "this machine is called laptop: expected --member with one of ctl1, ctl2, ctl3" in result.output


def test_what_the_machine_lacks_is_named(tmp_path: Path, monkeypatch):
    """Debian gives a machine's own name an address of loopback."""
    monkeypatch.setattr(socket, "gethostname", lambda: "ctl1")
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "127.0.1.1")
    assert "token is not there yet" not in deployed(tmp_path, "ctl2"), "another machine's"
    shown = deployed(tmp_path, "ctl1")
    assert all(f"{name} is 127.0.1.1 here" in shown for name in NAMES)
    for path in (SETTINGS / "token", CA):
        assert f"{tmp_path}{path} is not there yet" in shown
        (tmp_path / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path.relative_to("/")).touch()
        assert f"{tmp_path}{path} is not there yet" not in deployed(tmp_path, "ctl1")


def test_it_is_undone_and_leaves_what_is_stored(tmp_path: Path):
    deployed(tmp_path, "ctl1")
    data = tmp_path / "var/lib/netfold-etcd"
    data.mkdir(parents=True)
    result = deploy("--undo", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert data.is_dir()
    assert "left: certificates and tokens" in result.output
    result = deploy("--undo", "--out", tmp_path)
    assert (result.exit_code, "no controller is deployed there" in result.output) == (BAD_INPUT, True)


def test_a_member_that_was_replaced_joins_the_others(tmp_path: Path):
    deployed(tmp_path / "new", "ctl1")
    deployed(tmp_path / "old", "ctl1", "--joins")
    states = [option(words(tmp_path / at, "netfold-etcd"), "initial-cluster-state") for at in ("new", "old")]
    assert states == ["new", "existing"]


def test_what_the_user_may_not_look_for_is_named(tmp_path: Path, monkeypatch):
    """The folder of settings is its owner's alone."""
    monkeypatch.setattr(socket, "gethostname", lambda: "ctl1")
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "10.0.0.1")
    is_file = Path.is_file

    def refused(path: Path) -> bool:
        if SETTINGS.name in path.parts:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", refused)
    shown = deployed(tmp_path, "ctl1")
    assert f"{tmp_path}{SETTINGS}/fabric.yaml: Permission denied: as root, this command finds" in shown


def test_a_key_of_another_certificate_is_named(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "ctl1")
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "10.0.0.1")
    own = make_certificate(tmp_path, "ctl1")
    (tmp_path / "other").mkdir()
    other = make_certificate(tmp_path / "other", "ctl1")
    (tmp_path / SETTINGS.relative_to("/")).mkdir(parents=True)
    for path, file, is_right in (
        (CA, own.certificate, 0),
        (CERT, own.certificate, 0),
        (KEY, other.key, 0),
        (KEY, own.key, 1),
    ):
        shutil.copy(file, tmp_path / path.relative_to("/"))
        shown = deployed(tmp_path, "ctl1")
        assert ("are no certificate with its key" in shown) == (path is KEY and not is_right)


def test_another_text_is_named_where_it_is_replaced(tmp_path: Path):
    assert "another text" not in deployed(tmp_path, "ctl1") + deployed(tmp_path, "ctl1")
    unit = tmp_path / "etc/systemd/system/netfold-controller.service"
    unit.write_text("[Service]\nNice=-5\n")
    assert f"wrote {unit}, which had another text" in deployed(tmp_path, "ctl1")


def test_a_part_of_an_install_is_undone(tmp_path: Path):
    """A disk was full, or undoing failed midway."""
    deployed(tmp_path, "ctl1")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    for missing in files:
        deployed(tmp_path, "ctl1")
        missing.unlink()
        result = deploy("--undo", "--out", tmp_path)
        assert result.exit_code == 0, result.output
        assert not any(path.exists() for path in files)


def test_the_unit_of_a_controller_of_one_machine_is_left(tmp_path: Path):
    unit = tmp_path / "etc/systemd/system/netfold-controller.service"
    unit.parent.mkdir(parents=True)
    unit.touch()
    result = deploy("--undo", "--out", tmp_path)
    assert (result.exit_code, "no controller is deployed there" in result.output) == (BAD_INPUT, True)
    assert unit.exists()


def test_what_cannot_be_removed_is_named(tmp_path: Path):
    unit = tmp_path / "etc/systemd/system/netfold-etcd.service"
    unit.mkdir(parents=True)
    result = deploy("--undo", "--out", tmp_path)
    assert (result.exit_code, f"{unit}: Is a directory" in result.output) == (FAILED, True), result.output
