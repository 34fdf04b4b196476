# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""What gRPC reports of a controller that cannot be reached becomes the option that would be right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from netfold.protocol.connection import ConnectError, Connection, connection
from netfold.protocol.unreachable import unreachable_reason

TCP = Connection("ctl.example:9600")
SIGNED = Connection("ctl.example:9600", b"-----BEGIN CERTIFICATE-----")


@pytest.mark.parametrize(
    ("where", "details", "expected"),
    [
        (SIGNED, "SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: self signed", "not signed by an authority of --tls-ca"),
        (TCP, "SSL_ERROR_SSL: CERTIFICATE_VERIFY_FAILED: self signed", "of this system; name its own with --tls-ca"),
        (SIGNED, "UNAUTHENTICATED: Hostname Verification Check failed.", "not for 'ctl.example'; .* --tls-server-name"),
        (TCP, "ipv4:1.2.3.4:5: Failed to connect to remote host: Connection refused", "no process listens"),
        (TCP, "connect failed: Network is unreachable", "no route to it; a host of an emulated network"),
        (Connection("unix:/x"), "connect failed: No such file or directory", "no such socket"),
        (TCP, "something else", "something else"),
        (TCP, None, "no reason is known"),
    ],
)  # fmt: skip
def test_a_reason_names_what_would_be_right(where: Connection, details: str | None, expected: str):
    assert re.search(expected, unreachable_reason(where, details))


def test_a_file_without_a_certificate_is_refused_before_the_call(tmp_path: Path):
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(ConnectError, match="ca: no certificate is in it"):
        connection("ctl.example:9600", tmp_path / "ca")
