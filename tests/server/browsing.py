"""A browser for tests: keeps cookies, sends forms, logs in on the admin page."""

from __future__ import annotations

import http.cookies
import re
from urllib.parse import urlencode

from tests.server.running import Answer, Running

PASSWORD = "a good password 3"


class Browser:
    """Keeps cookies, sends forms."""

    def __init__(self, server: Running) -> None:
        self._caller = server.anonymous
        self.cookies: dict[str, str] = {}

    def call(
        self, method: str, path: str, form: dict[str, str] | None = None, **more: str
    ) -> Answer:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookie, "Host": "localhost", **more}
        body = None
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = urlencode(form).encode()
        answer = self._caller.call(method, path, body, **headers)
        for name, morsel in http.cookies.SimpleCookie(answer.headers.get("set-cookie", "")).items():
            self.cookies[name] = morsel.value
        return answer

    def log_in(self, name: str) -> Answer:
        page = self.call("GET", "/admin/login/")
        found = re.search(rb'name="csrfmiddlewaretoken" value="(\w+)"', page.body)
        assert found, page.body
        # Both cookies come in one answer; http.client joins them, SimpleCookie needs them apart.
        form = {"csrfmiddlewaretoken": found[1].decode(), "username": name, "password": PASSWORD}
        return self.call("POST", "/admin/login/?next=/admin/", form)
