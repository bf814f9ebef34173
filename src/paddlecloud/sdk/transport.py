"""Requests to one PaddleCloud server: logging in, retrying safely, telling errors apart.

It promises: an answer that is an error becomes the same `core.errors` class the server raised; a
server that cannot be reached becomes `ServerUnreachable` with what to do; a request is repeated
only when that cannot do the work twice; a token is renewed once, with the configured password,
when the server no longer takes it; with an access key every attempt is signed instead. Called by
the client. It knows no route but the login's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping

from paddlecloud.sdk import tokens
from paddlecloud.sdk.config import Profile, checked_endpoint
from paddlecloud.sdk.http import Connection, Cut, Endpoint, Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from typing import Any

    from paddlecloud.core.errors import PaddleCloudError

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
LOGIN_PATH = "/api-token-auth/"
# A server that answered once and then vanished is likely restarting: wait about 8 s for it.
RETRY_DELAYS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 2.5, 2.5)
FETCHING = "previous token not found, fetching a new one..."
_REPEATABLE = ("GET", "HEAD", "PUT", "DELETE")

Body = bytes | Callable[[], Iterable[bytes]]


class Transport:
    """Connections to one endpoint, as one user. Safe to use from several threads."""

    def __init__(
        self,
        profile: Profile,
        *,
        say: Callable[[str], None] = lambda text: None,
        user_agent: str = "paddlecloud-sdk",
    ) -> None:
        self.profile = profile
        self.endpoint: Endpoint = checked_endpoint(profile.endpoint, "endpoint")
        self._say = say
        self.user_agent = user_agent
        self._idle: list[Connection] = []
        self._context: ssl.SSLContext | None = None
        self._token: str | None = profile.token or None

    # --- one request -----------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ) -> Any:
        """Send JSON, get JSON (None for an empty answer)."""
        data = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        response = self.open(method, path, data, headers=headers, timeout_s=timeout_s)
        text = self.read(response)
        if not text:
            return None
        try:
            return json.loads(text)
        except ValueError:
            raise self.not_ours(response) from None

    def open(
        self,
        method: str,
        path: str,
        body: Body = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
        length: int | None = None,
    ) -> Response:
        """Send a request; the answer's head has been read and is no error.

        A body given as a function is called for each attempt, so that it can be sent again.
        """
        sent = {"Accept": "application/json", "User-Agent": self.user_agent}
        if body:
            sent["Content-Type"] = "application/json"
        if length is not None:
            sent["Content-Length"] = str(length)
            sent["Content-Type"] = "application/octet-stream"
        sent.update(headers or {})
        used = self.authorize(sent)
        response = self._send(method, path, sent, body, timeout_s)
        if response.status == 401 and self.renew(used):
            response.close()
            self.authorize(sent)
            response = self._send(method, path, sent, body, timeout_s)
        if response.status >= 300:
            raise self.error_of(response)
        return response

    def read(self, response: Response) -> bytes:
        """The whole body; a cut is reported in the user's terms."""
        try:
            return response.read()
        except OSError as error:
            response.close()
            raise self.unreachable(error) from error

    # --- connections -----------------------------------------------------------------------

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: Body, timeout_s: float
    ) -> Response:
        is_repeatable = method in _REPEATABLE or "Idempotency-Key" in headers
        delays = iter(RETRY_DELAYS_S)
        was_reached = False
        while True:
            connection = self._take_idle()
            try:
                if connection is None:
                    connection = self._connect()
                was_reached = True
                payload = body if isinstance(body, bytes) else body()
                sent = self.signed(self.endpoint, method, path, headers, body)
                return connection.request(method, path, sent, payload, timeout_s=timeout_s)
            except OSError as error:
                if connection is not None:
                    connection.close()
                is_timeout = isinstance(error, TimeoutError)
                delay_s = next(delays, None)
                may_repeat = is_repeatable and was_reached and not is_timeout
                if not may_repeat or delay_s is None or _is_certificate(error):
                    raise self.unreachable(error) from error
                time.sleep(delay_s)

    def _take_idle(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self) -> Connection:
        connection = self.connect_to(self.endpoint, CONNECT_TIMEOUT_S)
        connection.on_idle = self._idle
        return connection

    def connect_to(self, endpoint: Endpoint, timeout_s: float) -> Connection:
        """A new connection to this server or to another port of it, with the user's TLS."""
        if endpoint.tls and self._context is None:
            from paddlecloud.sdk.tls import make_context

            self._context = make_context(
                cacert=self.profile.cacert,
                usercert=self.profile.usercert,
                userkey=self.profile.userkey,
            )
        return Connection(endpoint, self._context if endpoint.tls else None, timeout_s)

    def close(self) -> None:
        while (connection := self._take_idle()) is not None:
            connection.close()

    # --- logging in ------------------------------------------------------------------------

    @property
    def is_signing(self) -> bool:
        """Whether an access key stands for the user, in place of a token."""
        return bool(self.profile.ak and self.profile.sk)

    def signed(
        self,
        endpoint: Endpoint,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: Body | None,
    ) -> Mapping[str, str]:
        """The headers of one attempt, signed if there is a key to sign with."""
        if not self.is_signing:
            return headers
        from paddlecloud.sdk.signed_requests import signed

        return signed(self.profile, endpoint, method, path, headers, body)

    def authorize(self, headers: dict[str, str]) -> str:
        """Add the token, fetching one when only a password is known; returns what was used."""
        if self.is_signing:
            return ""
        if self._token is None:
            self._token = tokens.cached(self.profile) if self.profile.username else ""
            if not self._token and self.profile.password:
                self._say(FETCHING)
                self.login()
        if self._token:
            headers["Authorization"] = f"Token {self._token}"
        return self._token or ""

    def renew(self, refused: str) -> bool:
        """After a 401: whether another try has a chance."""
        if self.is_signing:
            return False
        if self._token != refused:
            return True  # another thread has renewed it
        if not self.profile.password:
            return False
        self._say(FETCHING)
        self.login()
        return True

    def login(self, username: str = "", password: str = "") -> str:
        """Exchange a password for a token and remember it."""
        profile = self.profile
        profile.username = username or profile.username
        form = {"username": profile.username, "password": password or profile.password}
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        response = self._send(
            "POST", LOGIN_PATH, headers, json.dumps(form).encode(), ANSWER_TIMEOUT_S
        )
        if response.status >= 300:
            raise self.error_of(response, is_login=True)
        try:
            token = str(json.loads(self.read(response))["token"])
        except (ValueError, KeyError, TypeError):
            raise self.not_ours(response) from None
        self._token = token
        tokens.store(profile, token)
        return token

    # --- errors ----------------------------------------------------------------------------

    def unreachable(self, error: OSError) -> PaddleCloudError:
        from paddlecloud.core.errors import ServerUnreachable

        if _is_certificate(error):
            return ServerUnreachable(
                f"cannot trust the server at {self.endpoint.url} ({_why(error)})",
                hint="name its CA with `cacert:` in ~/.paddle/config",
            )
        hint = "start the embedded platform with: paddlecloud up"
        if not _is_local(self.endpoint.host):
            hint = "check `endpoint:` in ~/.paddle/config, or ask the administrator"
        return ServerUnreachable(
            f"no server answers at {self.endpoint.url} ({_why(error)})", hint=hint
        )

    def error_of(self, response: Response, *, is_login: bool = False) -> PaddleCloudError:
        """What an answer that is no success means."""
        return self.error_from(self.read(response), response, is_login=is_login)

    def error_from(
        self, text: bytes, response: Response, *, is_login: bool = False
    ) -> PaddleCloudError:
        from paddlecloud.core import errors

        try:
            body = json.loads(text)
        except ValueError:
            body = None
        if isinstance(body, dict) and "code" in body and "message" in body:
            # In v1 answers `code` is the HTTP status and the error's own code stands beside it.
            error = errors.error_from_json({**body, "code": body.get("error", body["code"])})
        else:
            known: list[type[PaddleCloudError]] = [errors.InvalidInput]
            known += errors.ERROR_CLASSES.values()
            cls = next((cls for cls in known if cls.http_status == response.status), None)
            if cls is None:
                return self.not_ours(response)
            message = _v1_message(body) or f"the server answered {response.status}"
            error = cls(message)
        if is_login and response.status in (400, 401):
            error = errors.NotLoggedIn(error.message, hint=error.hint)
        if isinstance(error, errors.NotLoggedIn) and not error.hint:
            error.hint = "write your user name and password into ~/.paddle/config"
        return error

    def not_ours(self, response: Response) -> PaddleCloudError:
        from paddlecloud.core.errors import Unavailable

        return Unavailable(
            f"{self.endpoint.url} answered {response.status} with something that is not ours",
            hint="is it a PaddleCloud server? check `endpoint:` in ~/.paddle/config",
        )


def _v1_message(body: object) -> str:
    """The words of the older shapes: `{"msg"}`, `{"detail"}`, `{"non_field_errors": [...]}`."""
    if not isinstance(body, dict):
        return ""
    for key in ("msg", "detail", "message"):
        if isinstance(body.get(key), str):
            return str(body[key])
    listed = body.get("non_field_errors")
    return str(listed[0]) if isinstance(listed, list) and listed else ""


def _is_local(host: str) -> bool:
    return host == "localhost" or host == "::1" or host.startswith("127.")


def _is_certificate(error: OSError) -> bool:
    return type(error).__name__ == "SSLCertVerificationError"


def _why(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, Cut):
        return str(error)
    detail = getattr(error, "verify_message", "") or error.strerror or str(error)
    return detail[:1].lower() + detail[1:]
