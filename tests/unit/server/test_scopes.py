"""Which rows of the route table a key of each scope may use."""

from __future__ import annotations

import pytest

from paddlecloud.core.errors import NotAllowed
from paddlecloud.server.routing import Access, Route
from paddlecloud.server.scopes import READ, SUBMIT, check
from paddlecloud.wire import routes


def row(method: str, path: str, access: Access = Access.USER) -> Route:
    return Route(method, path, print, "", access=access)


@pytest.mark.parametrize(
    ("method", "path", "is_read", "is_submit"),
    [
        ("GET", routes.JOBS, True, True),
        ("HEAD", routes.PACKAGE, True, True),
        ("POST", routes.PFS_COMPARE, True, True),
        ("POST", routes.JOBS, False, True),
        ("POST", routes.JOB_CANCEL, False, True),
        ("POST", routes.PFS_SNAPSHOTS, False, True),
        ("POST", routes.ALGORITHMS, False, True),
        ("POST", routes.GROUPS, False, False),
        ("PUT", routes.SERVICE_JOB, False, True),
        ("POST", routes.SERVICE_FILE, False, True),
        ("POST", routes.ACCOUNT_KEYS, False, False),
        ("PUT", routes.ACCOUNT_PASSWORD, False, False),
        ("POST", routes.PUBLICATIONS, False, False),
        ("POST", routes.JOBS + "x", False, False),
    ],
)
def test_a_scope_reaches_so_far(method: str, path: str, is_read: bool, is_submit: bool) -> None:
    for scope, is_allowed in ((READ, is_read), (SUBMIT, is_submit)):
        if is_allowed:
            check(scope, row(method, path))
        else:
            with pytest.raises(NotAllowed) as caught:
                check(scope, row(method, path))
            needed = "submit" if scope == READ and is_submit else "all"
            assert f"this needs {needed}" in caught.value.message


def test_what_is_for_administrators_needs_the_whole_account() -> None:
    with pytest.raises(NotAllowed):
        check(SUBMIT, row("GET", routes.ACCOUNTS, Access.ADMIN))
