# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Files of identities, those of an attacker or of a hurried operator among them, and the command that makes a line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from netfold.controller.jobs.submitter import TenantLimits
from netfold.controller.operator.token_command import app
from netfold.controller.service.identities import (
    IdentitiesError,
    Identity,
    Role,
    digest_of,
    identity_line,
    read_identities,
)
from netfold.controller.service.jwt_issuers import MAX_FILE_BYTES
from netfold.controller.service.security import Credentials, SecurityFileError, SecurityFiles
from tests.traffic.tls import make_certificate

ALICE = Identity("alice", "vision", Role.USER)
LINE = identity_line(ALICE, "token-of-alice")


def written(folder: Path, content: bytes | str) -> Path:
    file = folder / "identities"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_a_caller_is_found_by_its_token(tmp_path):
    known = read_identities(written(tmp_path, f"# of the site\n\n{LINE} # a comment\n"))
    assert known.of_token(b"token-of-alice") == ALICE
    assert known.of_token(digest_of(b"token-of-alice").encode()) is None, "a digest opens nothing"


def test_limits_are_those_of_all_users_of_a_tenant(tmp_path):
    chief = identity_line(Identity("chief", "vision", Role.OPERATOR), "token-of-chief")
    limits = "limits vision jobs=4 rate=12.5 priority=-3"
    known = read_identities(written(tmp_path, f"{limits}\n{LINE}\n{chief}\n"))
    alice, operator = known.of_token(b"token-of-alice"), known.of_token(b"token-of-chief")
    assert alice is not None
    assert alice.limits == TenantLimits(jobs=4, rate=12.5, priority=-3)
    assert operator is not None
    assert operator.limits == TenantLimits()
    free = read_identities(written(tmp_path, f"limits vision calls=unlimited\n{LINE}\n"))
    assert free.limits["vision"].calls == math.inf


def test_a_name_may_have_two_tokens_while_one_replaces_the_other(tmp_path):
    known = read_identities(written(tmp_path, f"{LINE}\n{identity_line(ALICE, 'newer-token')}\n"))
    assert known.of_token(b"token-of-alice") == known.of_token(b"newer-token") == ALICE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "expected at least one line"),
        ("# a comment\n", "expected at least one line"),
        (f"{LINE}\n{LINE}\n", ":2: the token of 'alice' again"),
        (f"{LINE}\nalice speech user {'0' * 64}\n", ":2: 'alice' has another tenant or role"),
        (f"alice vision user {'0' * 63}\n", ":1: expected the SHA-256"),
        (f"alice vision user {'G' * 64}\n", ":1: expected the SHA-256"),
        (f"alice vision member {'0' * 64}\n", ":1: role 'member'; expected viewer, user, operator"),
        (f"al/ice vision user {'0' * 64}\n", ":1: name 'al/ice'"),
        (f"{'a' * 65} vision user {'0' * 64}\n", ":1: name"),
        ("alice\n", ":1: 1 words; expected NAME TENANT ROLE SHA256"),
        (f"{LINE}\nlimits vision jobs=1\nlimits vision jobs=2\n", ":3: expected `limits TENANT"),
        (f"{LINE}\nlimits speech jobs=1\n", "limits of 'speech', a tenant that no identity has"),
        (f"{LINE}\nlimits vision\n", ":2: expected `limits TENANT"),
        (f"{LINE}\nlimits vision hosts=1\n", ":2: 'hosts=1'; expected KEY=NUMBER"),
        (f"{LINE}\nlimits vision rate=nan\n", ":2: 'rate=nan'; expected KEY=NUMBER"),
        (f"{LINE}\nlimits vision jobs=1.5\n", ":2: 'jobs=1.5'; expected a whole number, 0 or more"),
        (f"{LINE}\nlimits vision calls=-1\n", ":2: 'calls=-1'; expected a number above 0"),
        (f"{LINE}\nlimits vision calls=0\n", ":2: 'calls=0'; expected a number above 0"),
        (f"{LINE}\nlimits vision jobs=unlimited\n", "each once, or calls=unlimited"),
        (f"limits vision user {'0' * 64}\n", ":1: 'user'; expected KEY=NUMBER"),
        (b"\xff\xfe", "expected text in UTF-8"),
        (b"#" * (MAX_FILE_BYTES + 1), "has more than"),
    ],
)
def test_a_bad_file_is_named_with_its_line(content, message, tmp_path):
    with pytest.raises(IdentitiesError, match=message):
        read_identities(written(tmp_path, content))


def test_an_operator_may_submit_for_a_tenant_of_which_only_the_limits_are_known(tmp_path):
    operator = identity_line(Identity("slurm", "site", Role.OPERATOR), "token-of-slurm")
    known = read_identities(written(tmp_path, f"{operator}\nlimits vision jobs=1\n"))
    assert known.limits["vision"] == TenantLimits(jobs=1)


def test_a_file_that_every_user_writes_is_refused(tmp_path):
    file = written(tmp_path, LINE)
    file.chmod(0o666)
    with pytest.raises(IdentitiesError, match="can be written by every user"):
        read_identities(file)
    with pytest.raises(IdentitiesError, match="cannot be read"):
        read_identities(tmp_path / "missing")


def test_the_command_makes_a_token_and_its_line(tmp_path):
    arguments = ["alice", "--tenant", "vision", "--role", "user", "--out", str(tmp_path / "t")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    token = (tmp_path / "t").read_text().strip()
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o600
    assert token not in done.output
    assert read_identities(written(tmp_path, done.output)).of_token(token.encode()) == ALICE
    assert CliRunner().invoke(app, arguments).exit_code == 2, "the file is not replaced"
    assert CliRunner().invoke(app, ["a b", *arguments[1:]]).exit_code == 2


def test_a_reload_takes_the_identities_that_are_in_the_file_now(tmp_path):
    """A file that cannot be used leaves the earlier ones."""
    made = make_certificate(tmp_path)
    files = SecurityFiles(made.certificate, made.key, None, identities=written(tmp_path, LINE))
    credentials = Credentials(files.read(), files)
    assert credentials.current.callers.of_token(b"token-of-alice") == ALICE
    written(tmp_path, "half a line")
    with pytest.raises(SecurityFileError, match="expected NAME TENANT ROLE SHA256"):
        credentials.reload()
    assert credentials.current.callers.of_token(b"token-of-alice") == ALICE
    written(tmp_path, identity_line(ALICE, "newer-token"))
    credentials.reload()
    assert credentials.current.callers.of_token(b"token-of-alice") is None
    assert credentials.current.callers.of_token(b"newer-token") == ALICE
