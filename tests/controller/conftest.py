# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest

from netfold.controller.service.security import Security
from tests.traffic.tls import make_certificate


@pytest.fixture(scope="session")
def security(tmp_path_factory: pytest.TempPathFactory) -> Security:
    made = make_certificate(tmp_path_factory.mktemp("tls"), "localhost")
    pair = made.certificate.read_bytes(), made.key.read_bytes()
    return Security(*pair, frozenset({"a-token-of-an-operator"}), frozenset({"a-token-of-a-worker"}))
