"""The platform's own certificate authority: the server's certificate and users' client ones.

Made with the `openssl` program when TLS is first asked for (`up --tls`): the standard library can
use certificates but not make them, and one more compiled dependency for three commands is not
worth it. Keys are P-256 and never leave `secrets/` except a user's own, which is not kept. A
client certificate names the account and its id: an account made anew under an old name is another.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import ssl
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InternalError, Unavailable
from paddlecloud.server.database import rows_only
from paddlecloud.server.secretfiles import secrets_dir, write_secret

CA_DAYS = 3650
SERVER_DAYS = 397  # the longest browsers accept
USER_DAYS = 365
_RENEW_BEFORE_S = 30 * 86400
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True, slots=True)
class Pair:
    cert_pem: bytes
    key_pem: bytes


@dataclass(frozen=True, slots=True)
class Issued:
    """A client certificate and what must be remembered of it."""

    pair: Pair
    ca_pem: bytes
    serial: str  # hex, no leading zeros
    expires_at: float


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """What the listening side needs."""

    cert: Path
    key: Path
    ca: Path


def _openssl(*arguments: str, folder: str) -> None:
    rows_only("running openssl")
    program = shutil.which("openssl")
    if program is None:
        raise Unavailable(
            "TLS needs the openssl program, which is not installed", hint="apt-get install openssl"
        )
    done = subprocess.run(
        [program, *arguments], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=60
    )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise InternalError(f"openssl could not make a certificate: {said[-1] if said else '?'}")


def _make_ca(state_dir: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _openssl(
            *("req", "-x509", *_CURVE, "-days", str(CA_DAYS), "-subj", "/CN=PaddleCloud CA"),
            *("-addext", "basicConstraints=critical,CA:TRUE,pathlen:0"),
            *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
            *("-keyout", "key.pem", "-out", "cert.pem"),
            folder=folder,
        )
        # The key first: a certificate without its key would be believed to be complete.
        write_secret(secrets_dir(state_dir) / "ca-key.pem", Path(folder, "key.pem").read_bytes())
        write_secret(secrets_dir(state_dir) / "ca.pem", Path(folder, "cert.pem").read_bytes())


def _sign(state_dir: Path, subject: str, days: int, extensions: str) -> Pair:
    """A new key and a certificate for it, signed by our CA."""
    ca = secrets_dir(state_dir)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "extensions").write_text(extensions)
        _openssl(
            *("req", "-new", *_CURVE, "-utf8", "-subj", subject),
            *("-keyout", "key.pem", "-out", "request.pem"),
            folder=folder,
        )
        _openssl(
            *("x509", "-req", "-in", "request.pem", "-out", "cert.pem", "-days", str(days)),
            *("-CA", str(ca / "ca.pem"), "-CAkey", str(ca / "ca-key.pem")),
            *("-set_serial", f"0x{os.urandom(16).hex()}", "-extfile", "extensions"),
            folder=folder,
        )
        return Pair(Path(folder, "cert.pem").read_bytes(), Path(folder, "key.pem").read_bytes())


def server_files(state_dir: Path, hosts: tuple[str, ...]) -> ServerFiles:
    """The server's certificate for these names and addresses; made or renewed when needed."""
    folder = secrets_dir(state_dir)
    files = ServerFiles(folder / "server.pem", folder / "server-key.pem", folder / "ca.pem")
    if not files.ca.exists():
        _make_ca(state_dir)
    if not _is_good(files.cert, hosts):
        names = ",".join(f"{'IP' if _is_address(host) else 'DNS'}:{host}" for host in hosts)
        pair = _sign(
            state_dir,
            "/CN=PaddleCloud server",
            SERVER_DAYS,
            f"subjectAltName={names}\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n",
        )
        write_secret(files.key, pair.key_pem)
        write_secret(files.cert, pair.cert_pem)
    return files


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def _is_good(path: Path, hosts: tuple[str, ...]) -> bool:
    if not path.exists():
        return False
    facts = _read(path)
    if ssl.cert_time_to_seconds(facts["notAfter"]) < clock.now() + _RENEW_BEFORE_S:
        return False
    return {_plain(value) for _, value in facts["subjectAltName"]} >= set(map(_plain, hosts))


def _plain(host: str) -> str:
    """One spelling per address: OpenSSL writes ::1 as 0:0:0:0:0:0:0:1."""
    return str(ipaddress.ip_address(host)) if _is_address(host) else host


def _read(path: Path) -> dict[str, Any]:
    # The interpreter has no public reader of certificate files; this one feeds getpeercert().
    facts: dict[str, Any] = ssl._ssl._test_decode_cert(str(path))  # type: ignore[attr-defined]
    return facts


def account_certificate(state_dir: Path, name: str, account_id: int) -> Issued:
    """A certificate and key for the account. Whoever asks records it: `authentication` believes
    only those that are."""
    ca = secrets_dir(state_dir) / "ca.pem"
    if not ca.exists():
        raise Conflict(
            "this platform does not serve TLS, so certificates would prove nothing",
            hint="paddlecloud down, then paddlecloud up --tls",
        )
    # An account's name has no slash or quote in it (core.names), so it cannot add a field.
    pair = _sign(
        state_dir,
        f"/CN={name}/UID={account_id}",
        USER_DAYS,
        "extendedKeyUsage=clientAuth\nbasicConstraints=CA:FALSE\n",
    )
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:
        file.write(pair.cert_pem)
        file.flush()
        facts = _read(Path(file.name))
    expires_at = float(ssl.cert_time_to_seconds(facts["notAfter"]))
    return Issued(pair, ca.read_bytes(), _serial(facts), expires_at)


def _serial(facts: dict[str, Any]) -> str:
    return f"{int(facts['serialNumber'], 16):x}"


def peer_of(facts: dict[str, Any] | None) -> str:
    """`<id>:<serial>:<name>` of a verified client certificate, empty without one."""
    if not facts:
        return ""
    fields = {name: value for part in facts.get("subject", ()) for name, value in part}
    if "commonName" not in fields or "userId" not in fields:
        return ""
    return f"{fields['userId']}:{_serial(facts)}:{fields['commonName']}"
