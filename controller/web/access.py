# SPDX-FileCopyrightText: 2026 The netfold authors
# SPDX-License-Identifier: Apache-2.0
"""Access to the page: on loopback for every user of the machine, elsewhere by TLS and a token."""

from __future__ import annotations

import base64
import binascii
import hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

RELOADING_SCRIPT = "sha256-9sef9GLbntBvZ5txhDdTVJ96csFSO/jJXkjeULJ3vNs="
"""The script in index.html: the only one that is in the page itself, as it cannot fail to load."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"script-src 'self' '{RELOADING_SCRIPT}'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)

HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class AccessControl:
    """Refuses requests without one of `tokens` (None: none is needed), and those for a host name that is not the
    server's, which a page of another site sends when it has its name point here (DNS rebinding)."""

    def __init__(self, app: ASGIApp, *, tokens: frozenset[str] | None, loopback_only: bool) -> None:
        self._app = app
        self._tokens = None if tokens is None else [t.encode() for t in tokens]
        self._loopback_only = loopback_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self._app
        if self._loopback_only and not is_loopback(_host(headers.get("host", ""))):
            app = PlainTextResponse("this page is served for localhost only", 403)
        elif self._tokens is not None and not self._is_known(headers.get("authorization", "")):
            challenge = {"WWW-Authenticate": 'Basic realm="netfold, password: a token", charset="UTF-8"'}
            app = PlainTextResponse("a token of this server is needed", 401, challenge)
        await app(scope, receive, send_with_headers)

    def _is_known(self, authorization: str) -> bool:
        """Compare in constant time for each token."""
        assert self._tokens is not None
        shown = _shown_token(authorization)
        matches = [hmac.compare_digest(shown, known) for known in self._tokens]
        return any(matches)


def is_loopback(host: str) -> bool:
    """`host`: a name, or an address without brackets."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _host(header: str) -> str:
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _shown_token(authorization: str) -> bytes:
    """Return the token of `Bearer TOKEN`, or the password of `Basic`, which browsers ask for; empty without either."""
    kind, _, value = authorization.partition(" ")
    if kind.lower() == "bearer":
        return value.encode()
    if kind.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
