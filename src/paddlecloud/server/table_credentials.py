"""The rows of our own interface about passwords, tokens, certificates and access keys."""

from __future__ import annotations

from paddlecloud.server.routers import credentials_v2
from paddlecloud.server.routing import Access, Change, Route
from paddlecloud.wire import credential_shapes as shapes
from paddlecloud.wire import routes

ROUTES = [
    Route(
        "POST",
        routes.ACCOUNT_DISABLE,
        credentials_v2.disable,
        "Refuse every login of an account from now on; its jobs go on unless kill_jobs"
        " (administrators)",
        body=shapes.DisableBody,
        answers={200: shapes.AccessShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
    ),
    Route(
        "POST",
        routes.ACCOUNT_ENABLE,
        credentials_v2.enable,
        "Let a disabled account in again, with the credentials it had (administrators)",
        answers={200: shapes.AccessShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
    ),
    Route(
        "PUT",
        routes.ACCOUNT_PASSWORD,
        credentials_v2.set_password,
        "Change a password and end the sessions of the old one; one's own, or as an administrator",
        body=shapes.PasswordBody,
        answers={204: None},
        change=Change.EACH,
    ),
    Route(
        "GET",
        routes.ACCOUNT_TOKENS,
        credentials_v2.list_tokens,
        "The tokens of an account, without what is secret in them; one's own, or as an"
        " administrator",
        answers={200: shapes.TokenListShape},
    ),
    Route(
        "GET",
        routes.ACCOUNT_CERTS,
        credentials_v2.list_certs,
        "Every certificate issued to an account; one's own, or as an administrator",
        answers={200: shapes.CertListShape},
    ),
    Route(
        "POST",
        routes.ACCOUNT_CERT,
        credentials_v2.make_cert,
        "A client certificate and key for an account, made anew each time (administrators)",
        answers={201: shapes.CertShape},
        access=Access.ADMIN,
        change=Change.EACH,
        secret_answer=True,
    ),
    Route(
        "GET",
        routes.ACCOUNT_KEYS,
        credentials_v2.list_keys,
        "Every access key of an account, without its secret; one's own, or as an administrator",
        answers={200: shapes.KeyListShape},
    ),
    Route(
        "POST",
        routes.ACCOUNT_KEYS,
        credentials_v2.make_key,
        "A new access key; its secret is in this answer only. One's own, or as an administrator",
        body=shapes.KeyBody,
        answers={201: shapes.KeyShape},
        change=Change.ATOMIC,
        secret_answer=True,
    ),
    Route(
        "POST",
        routes.ACCOUNT_KEYS_ROTATE,
        credentials_v2.rotate_key,
        "A new secret for an access key; one's own, or as an administrator",
        body=shapes.RotateBody,
        answers={200: shapes.KeyShape},
        change=Change.ATOMIC,
        secret_answer=True,
    ),
    Route(
        "POST",
        routes.ACCOUNT_REVOKE,
        credentials_v2.revoke,
        "Revoke one token, one certificate, one access key, or all of them; one's own, or as an"
        " administrator",
        body=shapes.RevokeBody,
        answers={200: shapes.RevokedShape},
        change=Change.ATOMIC,
    ),
]
