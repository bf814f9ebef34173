"""Session cookies for the API: what a browser page of ours uses instead of a token.

Reading needs the session alone; a change must also pass Django's CSRF check, because a browser
sends cookies along with requests that another site made. Imported with the first such request.
"""

from __future__ import annotations

import io

from django.contrib.auth import get_user
from django.contrib.sessions.backends.db import SessionStore
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.middleware.csrf import CsrfViewMiddleware

from paddlecloud.core.errors import NotAllowed, NotLoggedIn
from paddlecloud.server.authentication import Principal
from paddlecloud.server.exchange import Request

_SAFE = ("GET", "HEAD", "OPTIONS")


def _django_request(request: Request) -> WSGIRequest:
    environ = {
        "REQUEST_METHOD": request.method,
        "PATH_INFO": request.path,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "wsgi.input": io.BytesIO(b""),
        "wsgi.url_scheme": request.scheme,
    }
    for name in ("host", "cookie", "origin", "referer", "x-csrftoken"):
        if name in request.headers:
            environ["HTTP_" + name.upper().replace("-", "_")] = request.headers[name]
    return WSGIRequest(environ)


def principal_of(request: Request) -> Principal:
    django_request = _django_request(request)
    django_request.session = SessionStore(django_request.COOKIES.get("sessionid"))
    account = get_user(django_request)
    if not account.is_authenticated or not account.is_active:
        raise NotLoggedIn("the session has ended", hint="log in again")
    if request.method not in _SAFE:
        _check_csrf(django_request)
    return Principal(account.pk, account.username, account.is_staff)


def _check_csrf(django_request: WSGIRequest) -> None:
    middleware = CsrfViewMiddleware(lambda _: HttpResponse())
    middleware.process_request(django_request)
    if middleware.process_view(django_request, _unused_view, (), {}) is not None:
        raise NotAllowed(
            "a change by session cookie needs the CSRF token",
            hint="send the csrftoken cookie's value as X-CSRFToken, or use a token",
        )


def _unused_view(_: object) -> HttpResponse:
    return HttpResponse()
