# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""A standby knows by a digest whether it takes the tokens of its primary."""

from __future__ import annotations

import pytest

from netfold.controller.service.server import Security
from netfold.controller.service.token_digest import has_tokens_of, token_digest

OPERATORS, MEMBERS = frozenset({"operator-1", "operator-2"}), frozenset({"member"})


def security(operators: frozenset[str], members: frozenset[str], certificate: bytes = b"") -> Security:
    return Security(certificate, b"", operators, members)


def test_the_same_tokens_are_known_whatever_the_certificate_is():
    published = token_digest(security(OPERATORS, MEMBERS))
    assert has_tokens_of(security(frozenset(sorted(OPERATORS)), MEMBERS, b"another"), published)


@pytest.mark.parametrize(
    "other",
    [
        None,
        security(OPERATORS, frozenset()),
        security(OPERATORS - {"operator-1"}, MEMBERS),
        security(OPERATORS, MEMBERS | {"member-2"}),
        security(OPERATORS | MEMBERS, frozenset()),
        security(MEMBERS, OPERATORS),
    ],
)
def test_other_tokens_are_told_from_them(other: Security | None):
    assert not has_tokens_of(other, token_digest(security(OPERATORS, MEMBERS)))


@pytest.mark.parametrize("own", [None, security(OPERATORS, MEMBERS)])
def test_a_controller_without_tokens_and_one_that_has_published_none_refuse_no_holder(own: Security | None):
    assert token_digest(None) == ""
    assert has_tokens_of(own, "")


def test_no_two_digests_are_alike():
    """Neither of two stores nor of two terms: equal tokens are not seen to be equal."""
    assert token_digest(security(OPERATORS, MEMBERS)) != token_digest(security(OPERATORS, MEMBERS))
