# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Callers with JSON Web Tokens: those of Slurm, of an issuer with public keys, and of attackers."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import grpc
import pytest

from netfold.controller.jobs.submitter import TenantLimits
from netfold.controller.service.identities import (
    IdentitiesError,
    Identity,
    Role,
    identity_line,
    read_identities,
)
from netfold.controller.service.jwt_issuers import TokenRefusedError
from netfold.controller.service.leadership import has_tokens_of, token_digest
from netfold.controller.service.security import Credentials, Security, SecurityFiles
from netfold.controller.service.server import serving
from netfold.controller.service.servicer import service_of
from netfold.controller.service.standby import ServiceProxy
from netfold.protocol import netfold_pb2 as pb
from netfold.protocol import netfold_pb2_grpc as pb_grpc
from netfold.protocol.channels import open_aio_channel
from netfold.protocol.connection import Connection
from netfold.topologies.generators import single_switch
from tests.controller.deployment import deployed
from tests.traffic.tls import make_certificate

NOT_INSTALLED = "SKIPPED: PyJWT is not installed with cryptography (pip install 'netfold[jwt]')"
jwt = pytest.importorskip("jwt", reason=NOT_INSTALLED)
pytest.importorskip("cryptography.hazmat.primitives.asymmetric", reason=NOT_INSTALLED)

from cryptography.hazmat.primitives.asymmetric import ec, rsa  # noqa: E402
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: E402

SECRET = b"\x00a secret of Slurm, 32 bytes or so\xff"
RSA, EC = rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1())
OTHER_RSA = rsa.generate_private_key(65537, 2048)


def jwk(key: Any, kid: str, **more: str) -> dict[str, Any]:
    algorithm = (
        jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    )
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


def identities(folder: Path, *lines: str) -> Path:
    (folder / "secret").write_bytes(SECRET)
    (folder / "secret").chmod(0o600)
    (folder / "jwks.json").write_text(json.dumps({"keys": [jwk(RSA, "r1"), jwk(EC, "e1")]}))
    file = folder / "identities"
    file.write_text("\n".join(lines) + "\n")
    return file


SLURM = "jwt hs256 secret name-claim=sun tenant=cluster role=user"
CLOUD = "jwt jwks jwks.json tenant-claim=team role-claim=role issuer=https://a.example audience=netfold"


def slurm(exp: float = 60.0, **claims: object) -> bytes:
    """As `scontrol token username=alice` makes it."""
    now = int(time.time())
    return jwt.encode({"exp": int(now + exp), "iat": now, "sun": "alice", **claims}, SECRET, "HS256").encode()


def encoded(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(content).rstrip(b"=")


def slurm_of(claims: bytes) -> bytes:
    """A token of Slurm with claims that PyJWT would not write."""
    signed = b".".join((encoded(b'{"alg": "HS256"}'), encoded(claims)))
    return b".".join((signed, encoded(hmac.digest(SECRET, signed, hashlib.sha256))))


CLAIMS = {"iss": "https://a.example", "aud": "netfold", "sub": "bob", "team": "vision", "role": "viewer"}


def cloud(key: Any = RSA, algorithm: str = "RS256", kid: str | None = "r1", **changes: object) -> bytes:
    claims = {**CLAIMS, "exp": int(time.time()) + 60, **changes}
    present = {name: value for name, value in claims.items() if value is not None}
    return jwt.encode(present, key, algorithm, headers={"kid": kid} if kid else {}).encode()


def test_a_token_of_slurm_is_a_user_of_the_issuers_tenant(tmp_path):
    known = read_identities(identities(tmp_path, SLURM, "limits cluster jobs=3 weight=2"))
    assert known.of_token(slurm()) == Identity(
        "alice", "cluster", Role.USER, limits=TenantLimits(jobs=3, weight=2.0)
    )
    assert known.of_token(b"a random token") is None


def test_the_file_gives_a_named_caller_its_tenant_and_role(tmp_path):
    known = read_identities(identities(tmp_path, SLURM, "alice vision operator jwt"))
    found = known.of_token(slurm())
    assert (found.tenant, found.role) == ("vision", Role.OPERATOR)
    assert known.of_token(slurm(sun="carol")).tenant == "cluster"
    assert known.of_token(b"jwt") is None


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"),
    [(RSA, "RS256", "r1"), (EC, "ES256", "e1"), (RSA, "RS256", None), (EC, "ES256", None)],
)
def test_claims_of_an_issuer_name_the_caller(key, algorithm, kid, tmp_path):
    known = read_identities(identities(tmp_path, CLOUD))
    assert known.of_token(cloud(key, algorithm, kid)) == Identity("bob", "vision", Role.VIEWER)


def forged(header: dict[str, str], secret: bytes | None) -> bytes:
    claims = {**CLAIMS, "role": "operator", "exp": int(time.time()) + 60, "sun": "alice"}
    parts = [encoded(json.dumps(p).encode()) for p in (header, claims)]
    proof = b"" if secret is None else hmac.digest(secret, b".".join(parts), hashlib.sha256)
    return b".".join((*parts, encoded(proof)))


JWKS = json.dumps({"keys": [jwk(RSA, "r1")]}).encode()
PEM = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (lambda: forged({"alg": "none"}, None), "signed by no 'none' key"),
        (lambda: forged({"alg": "None"}, None), "signed by no 'None' key"),
        (lambda: forged({"alg": "HS256", "kid": "r1"}, PEM), "signed by no 'HS256' key"),
        (lambda: forged({"alg": "HS256"}, b""), "signed by no 'HS256' key"),
        (lambda: forged({"alg": "RS256", "kid": "r1"}, SECRET), "signed by no 'RS256' key"),
        (lambda: forged({"alg": "HS256", "crit": ["x"]}, SECRET), "critical|crit|extension"),
        (
            lambda: jwt.encode({"exp": 9e9, "sun": "a"}, 2 * SECRET, "HS512").encode(),
            "signed by no 'HS512' key",
        ),
        (lambda: cloud(OTHER_RSA), "signed by no 'RS256' key"),
        (lambda: cloud(kid="other"), "signed by no 'RS256' key"),
        (lambda: cloud(exp=int(time.time()) - 31), "expired"),
        (lambda: cloud(exp=None), '"exp"'),
        (lambda: cloud(nbf=int(time.time()) + 60), "not yet valid"),
        (lambda: cloud(aud="other"), "[Aa]udience"),
        (lambda: cloud(aud=None), '"aud"'),
        (lambda: cloud(iss="https://b.example"), "[Ii]ssuer"),
        (lambda: cloud(role="king"), "the role 'king'"),
        (lambda: cloud(role="member"), "the role 'member'"),
        (lambda: cloud(role=None), "the role ''"),
        (lambda: cloud(team=None), "tenant ''"),
        (lambda: cloud(team=["vision"]), "claim 'team' is no text"),
        (lambda: cloud(sub="a b"), "name 'a b'"),
        (lambda: slurm(-31), "expired"),
        (lambda: slurm(aud="netfold"), "[Aa]udience"),
        (lambda: slurm(sun=None), "claim 'sun' is no text"),
        (lambda: slurm()[:-2] + b"AA", "signed by no 'HS256' key"),
        (lambda: b"a.b.c", "cannot be read"),
        (lambda: b".".join((encoded(b"[" * 6000), b"e30", b"")), "cannot be read"),
        (lambda: slurm_of(b'{"exp": 1%s, "sun": "alice"}' % (b"0" * 400)), "refused: .*too large"),
        (lambda: slurm_of(b'{"exp": [1], "sun": "alice"}'), "token is refused"),
        (lambda: slurm_of(b'{"exp": 9%s, "sun": "alice"}' % (b"0" * 5000)), "token is refused"),
    ],
)
def test_a_token_that_no_issuer_vouches_for_is_refused_with_the_reason(
    token: Callable[[], bytes], message, tmp_path
):
    known = read_identities(identities(tmp_path, SLURM, CLOUD))
    with pytest.raises(TokenRefusedError, match=message):
        known.of_token(token())


def test_a_token_that_was_accepted_is_refused_once_it_has_expired(tmp_path, monkeypatch):
    known = read_identities(identities(tmp_path, SLURM))
    token = slurm(60)
    assert known.of_token(token) is not None
    later = time.time() + 91
    monkeypatch.setattr(known.verifier, "_now", lambda: later)
    monkeypatch.setattr(jwt.api_jwt, "datetime", _clock(later))
    with pytest.raises(TokenRefusedError, match="expired"):
        known.of_token(token)


def _clock(at: float) -> type:
    class Later(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.fromtimestamp(at, tz)

    return Later


@pytest.mark.parametrize(
    ("line", "keys", "message"),
    [
        ("jwt hs256", None, "expected `jwt hs256"),
        ("jwt rs256 secret", None, "kind 'rs256'; expected hs256 or jwks"),
        ("jwt hs256 missing", None, "missing cannot be read"),
        ("jwt hs256 jwks.json", None, "every user can read"),
        ("jwt hs256 secret role=king", None, "role='king'"),
        ("jwt hs256 secret leeway=301", None, "leeway=301; expected seconds, at most 300"),
        ("jwt hs256 secret color=red", None, "'color=red'; expected KEY=VALUE"),
        ("jwt hs256 secret role=user role=user", None, "each once"),
        ("alice vision user jwt", None, "'alice' has a JSON Web Token"),
        ("jwt jwks secret tenant=a", None, "expected a JWKS"),
        ("jwt jwks jwks.json", [{"kty": "oct", "k": "AAAA", "kid": "s"}], "key 's' is secret"),
        ("jwt jwks jwks.json", [jwk(RSA, "r", d="AQ")], "key 'r' is secret"),
        ("jwt jwks jwks.json", [jwk(RSA, "r", alg="RS512")], "no key for RS256 or ES256"),
        (
            "jwt jwks jwks.json",
            [{"kty": "RSA", "n": "AQ", "e": "AQAB"}],
            "bits; expected 2048|cannot be read",
        ),
        ("jwt jwks jwks.json", [{"kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ"}], "cannot be read"),
        ("jwt jwks jwks.json", [jwk(RSA, str(n)) for n in range(33)], "has 33 keys"),
    ],
)
def test_an_issuer_that_cannot_be_used_is_named_with_its_line(line, keys, message, tmp_path):
    file = identities(tmp_path, line)
    if keys is not None:
        (tmp_path / "jwks.json").write_text(json.dumps({"keys": keys}))
    (tmp_path / "jwks.json").chmod(0o644)
    with pytest.raises(IdentitiesError, match=message):
        read_identities(file)


@pytest.mark.parametrize(
    ("content", "message"), [(b"short", "has 5 bytes"), (PEM, "in PEM"), (JWKS, "or a JWKS")]
)
def test_a_secret_that_cannot_be_one_is_refused(content, message, tmp_path):
    file = identities(tmp_path, SLURM)
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(IdentitiesError, match=message):
        read_identities(file)


def test_keys_are_read_again_with_the_identities(tmp_path):
    """A standby with other keys accepts other callers."""
    made = make_certificate(tmp_path)
    files = SecurityFiles(made.certificate, made.key, None, identities=identities(tmp_path, CLOUD))
    credentials = Credentials(files.read(), files)
    before = credentials.current
    assert credentials.current.callers.of_token(cloud()) is not None
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(OTHER_RSA, "r1")]}))
    credentials.reload()
    assert credentials.current.callers.of_token(cloud(OTHER_RSA)) is not None
    with pytest.raises(TokenRefusedError):
        credentials.current.callers.of_token(cloud())
    assert has_tokens_of(before, token_digest(before))
    assert not has_tokens_of(before, token_digest(credentials.current))


async def test_calls_with_json_web_tokens(security: Security, tmp_path):
    """Tokens of users submit for their tenant. A refusal says why. A token of the file is taken, too."""
    root = identity_line(Identity("root", "site", Role.OPERATOR), "the-token-of-root")
    known = read_identities(identities(tmp_path, SLURM, CLOUD, root))
    credentials = Credentials(replace(security, tokens=frozenset(), identities=known))
    spec = "name: digits\nworkers: [h1]\nscheme: switchml\nlease_ms: 60000\n"
    async with contextlib.AsyncExitStack() as stack:
        deployment = await stack.enter_async_context(deployed(single_switch(2), tmp_path))
        service = ServiceProxy(service_of(deployment.controller))
        address = await stack.enter_async_context(serving(service, "localhost:0", credentials))
        await deployment.settled()

        async def call(token: bytes, name: str, request: Any) -> Any:
            where = Connection(address, security.certificate, token.decode())
            async with open_aio_channel(where) as channel:
                return await getattr(pb_grpc.ControllerStub(channel), name)(request, timeout=20)

        job = await call(slurm(), "SubmitJob", pb.SubmitJobRequest(spec_yaml=spec))
        assert (job.tenant, job.submitted_by) == ("cluster", "alice")
        assert len((await call(cloud(), "ListJobs", pb.ListJobsRequest())).jobs) == 1
        assert len((await call(b"the-token-of-root", "ListJobs", pb.ListJobsRequest())).jobs) == 1
        assert (await call(job.member_token.encode(), "GetJob", pb.JobName(name="digits"))).name == "digits"
        for token, code, reason in (
            (cloud(), grpc.StatusCode.PERMISSION_DENIED, "a viewer may not call SubmitJob"),
            (slurm(-31), grpc.StatusCode.UNAUTHENTICATED, "has expired"),
            (forged({"alg": "none"}, None), grpc.StatusCode.UNAUTHENTICATED, "no 'none' key"),
        ):
            with pytest.raises(grpc.aio.AioRpcError, match=reason) as caught:
                await call(token, "SubmitJob", pb.SubmitJobRequest(spec_yaml=spec))
            assert caught.value.code() is code
