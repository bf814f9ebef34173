"""What the file service is told at its start: arguments, or variables of the environment.

Everything is checked here, so that a mistake is a sentence at the start and not a failure later.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from paddlecloud.core.errors import InvalidInput
from paddlecloud.wire.pfspath import BadPath, check_part

DEFAULT_PORT = 8800
_MAX_FILE_BYTES = 4 << 40


@dataclass(frozen=True, slots=True)
class Settings:
    root: Path
    server_url: str  # the cloud server, which knows who calls
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: any free one
    datacenters: tuple[str, ...] = ()  # none: all names are taken for this root
    run_file: Path | None = None  # {"pid", "port", ...} while it listens
    relay_secret: Path | None = None  # a file the cloud server reads too
    server_ca: str | None = None  # whom to believe about an https cloud server
    tls_cert: str | None = None
    tls_key: str | None = None
    listen_fd: int | None = None  # an inherited socket, instead of host and port
    parent_pid: int | None = None  # end when this process does
    syncs: bool = True
    hands_over: bool = True  # take files from clients on this machine instead of their bytes
    max_connections: int = 4096
    max_connections_per_address: int = 1024
    max_requests_per_account: int = 1024
    max_file_bytes: int = _MAX_FILE_BYTES


# argument: variable
_VARIABLES = {
    "root": "PADDLECLOUD_PFS_ROOT",
    "server": "PADDLECLOUD_PFS_SERVER",
    "host": "PADDLECLOUD_PFS_HOST",
    "port": "PADDLECLOUD_PFS_PORT",
    "datacenter": "PADDLECLOUD_PFS_DATACENTERS",
    "run_file": "PADDLECLOUD_PFS_RUN_FILE",
    "relay_secret": "PADDLECLOUD_PFS_RELAY_SECRET",
    "server_ca": "PADDLECLOUD_PFS_SERVER_CA",
    "tls_cert": "PADDLECLOUD_PFS_TLS_CERT",
    "tls_key": "PADDLECLOUD_PFS_TLS_KEY",
}


def parse(argv: Sequence[str] | None, environment: Mapping[str, str]) -> Settings:
    """Raises InvalidInput; argparse itself ends the program for words it does not know."""
    given = vars(_parser().parse_args(argv))
    values = {name: given[name] or environment.get(var) or "" for name, var in _VARIABLES.items()}
    named = given["datacenter"] or values["datacenter"].replace(",", " ").split()
    return Settings(
        root=Path(_needed(values, "root")),
        server_url=_url(_needed(values, "server")),
        host=values["host"] or "127.0.0.1",
        port=_port(values["port"]),
        datacenters=tuple(_datacenter(name) for name in named),
        run_file=_optional(values["run_file"]),
        relay_secret=_optional(values["relay_secret"]),
        server_ca=_file(values["server_ca"], "--server-ca"),
        tls_cert=_file(values["tls_cert"], "--tls-cert"),
        tls_key=_pair(_file(values["tls_key"], "--tls-key"), values),
        listen_fd=_whole(given["listen_fd"], "--listen-fd"),
        parent_pid=_whole(given["parent"], "--parent"),
        syncs=not (given["no_sync"] or environment.get("PADDLECLOUD_PFS_NO_SYNC") == "1"),
        hands_over=environment.get("PADDLECLOUD_PFS_HANDOVER") != "0",
        max_connections=_count(environment, "PADDLECLOUD_PFS_MAX_CONNECTIONS", 4096),
        max_connections_per_address=_count(
            environment, "PADDLECLOUD_PFS_MAX_CONNECTIONS_PER_ADDRESS", 1024
        ),
        max_requests_per_account=_count(environment, "PADDLECLOUD_PFS_MAX_REQUESTS", 1024),
        max_file_bytes=_count(environment, "PADDLECLOUD_MAX_FILE_BYTES", _MAX_FILE_BYTES),
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paddlecloud.pfs.serving", description="The file service of PaddleCloud."
    )
    for flags, metavar, meaning in (
        ("--root", "DIR", "where the files are; any mounted POSIX storage"),
        ("--server", "URL", "the cloud server, asked who calls"),
        ("--host", "ADDRESS", "address to listen on (127.0.0.1)"),
        ("--port", "N", f"port to listen on, 0 = any free ({DEFAULT_PORT})"),
        ("--run-file", "FILE", "written with pid and port when it listens"),
        ("--relay-secret", "FILE", "holds what a cloud server that passes calls on proves"),
        ("--server-ca", "FILE", "certificates to believe an https cloud server by"),
        ("--tls-cert", "FILE", "serve https with this certificate"),
        ("--tls-key", "FILE", "and this key"),
    ):
        variable = _VARIABLES[flags.removeprefix("--").replace("-", "_")]
        parser.add_argument(flags, metavar=metavar, help=f"{meaning} [{variable}]")
    parser.add_argument(
        "--datacenter",
        metavar="NAME",
        action="append",
        help="a name in /pfs/<name>/... that is served; repeatable [PADDLECLOUD_PFS_DATACENTERS]",
    )
    parser.add_argument("--listen-fd", metavar="N", help="listen on this inherited socket")
    parser.add_argument("--parent", metavar="PID", help="end when this process does")
    parser.add_argument(
        "--no-sync",
        action="store_true",
        help="answer before the disk has it: a power cut loses files [PADDLECLOUD_PFS_NO_SYNC=1]",
    )
    return parser


def _needed(values: Mapping[str, str], name: str) -> str:
    if not values[name]:
        raise InvalidInput(f"is needed (or {_VARIABLES[name]})", field=f"--{name}")
    return values[name]


def _url(text: str) -> str:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        url, port = urlsplit(""), 0
    if url.scheme not in ("http", "https") or not url.hostname or port == 0:
        raise InvalidInput(
            f"{text!r} is not an address", field="--server", hint="such as http://127.0.0.1:8000"
        )
    return text.rstrip("/")


def _whole(text: str | None, flag: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput("must be a whole number", field=flag)
    return int(text)


def _port(text: str) -> int:
    if not text:
        return DEFAULT_PORT
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise InvalidInput("must be a number from 0 to 65535", field="--port")
    return int(text)


def _count(environment: Mapping[str, str], variable: str, default: int) -> int:
    text = environment.get(variable, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise InvalidInput("must be a whole number from 1 on", field=variable)
    return int(text)


def _datacenter(name: str) -> str:
    try:
        check_part(name)
    except BadPath as error:
        raise InvalidInput(error.message, field="--datacenter") from None
    return name


def _optional(text: str) -> Path | None:
    return Path(text) if text else None


def _file(text: str, flag: str) -> str | None:
    if not text:
        return None
    if not os.access(text, os.R_OK):
        raise InvalidInput(f"{text} cannot be read", field=flag)
    return text


def _pair(key: str | None, values: Mapping[str, str]) -> str | None:
    if bool(key) != bool(values["tls_cert"]):
        raise InvalidInput("give both --tls-cert and --tls-key", field="--tls-cert")
    return key
