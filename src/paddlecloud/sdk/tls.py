"""TLS for the SDK: one context per connection profile, made only when an endpoint is https.

It promises: certificates are always checked, against the platform's own CA when one is known,
else against the system's; a user's certificate and key are presented when configured. Called by
the client. It never turns checking off and never reads a key that is not named.
"""

from __future__ import annotations

import os

from paddlecloud.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

CA_NAME = "ca.pem"  # beside `usercert`, as `account cert` writes it


def find_ca(cacert: str, usercert: str) -> str:
    """The CA to trust: the one named, else a `ca.pem` beside the user's certificate."""
    if cacert:
        return cacert
    if usercert:
        beside = os.path.join(os.path.dirname(os.path.abspath(usercert)), CA_NAME)
        if os.path.exists(beside):
            return beside
    return ""


def make_context(*, cacert: str, usercert: str, userkey: str) -> ssl.SSLContext:
    """The context for an https endpoint; unusable files are refused by name."""
    import ssl

    ca = find_ca(cacert, usercert)
    try:
        context = ssl.create_default_context(cafile=ca or None)
    except OSError as error:
        raise InvalidInput(
            f"cannot use the CA certificate {ca}: {_why(error)}", field="cacert"
        ) from error
    if usercert:
        try:
            context.load_cert_chain(usercert, userkey or None, password=_no_password)
        except OSError as error:
            raise InvalidInput(
                f"cannot use usercert {usercert} with userkey {userkey or usercert}: {_why(error)}",
                hint="ask the administrator for a new pair: paddlecloud account cert NAME",
                field="usercert",
            ) from error
    return context


def _no_password() -> str:
    # Without this OpenSSL would stop and ask on the terminal.
    return ""


def _why(error: OSError) -> str:
    return error.strerror or str(error)
