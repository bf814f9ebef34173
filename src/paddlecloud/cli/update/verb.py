"""`paddlecloud update`: another release of this program, checked, beside the installed one.

It promises: nothing is installed without a checksum that matches; the installed release is not
touched and the switch is undone if the new one does not start; `--check` changes nothing.
"""

from __future__ import annotations

import os
import sys

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import Conflict, InvalidInput, NotFound, Unavailable
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.cli.update.environments import Installed
    from paddlecloud.cli.update.sources import Release

USAGE = "paddlecloud update [--check] [--index WHERE | --wheel PATH] [--sha256 HEX] | --rollback"
HELP = """
Without --index or --wheel it asks the index of PADDLECLOUD_UPDATE_INDEX, or of `index` in the
section [update] of ~/.paddlecli/config. The checksum is the index's, or is beside the wheel in
<wheel>.sha256 or SHA256SUMS, or is given.

Examples:
  paddlecloud update --check
  paddlecloud update --wheel ./paddlecloud-0.2.0-py3-none-any.whl
  paddlecloud update --rollback
"""
FLAGS = (
    Flag(("--check",), Kind.BOOL, meaning="only say what would be done"),
    Flag(("--index",), value="WHERE", meaning="a simple package index, or a folder of wheels"),
    Flag(("--wheel",), value="PATH", meaning="this file"),
    Flag(("--sha256",), value="HEX", meaning="the checksum the wheel must have"),
    Flag(("--to",), value="VERSION", meaning="this release, not the newest; may be an older one"),
    Flag(("--pre",), Kind.BOOL, meaning="releases that are not final count, too"),
    Flag(("--rollback",), Kind.BOOL, meaning="go back to the release before the last update"),
)


def run(session: Session) -> int:
    from paddlecloud.cli.update import environments

    parsed = session.parsed
    if parsed.positionals:
        raise InvalidInput(f"what is {parsed.positionals[0]}?", hint=f"usage: {USAGE}")
    if "index" in parsed and "wheel" in parsed:
        raise InvalidInput("--index and --wheel exclude each other", field="--wheel")
    now = environments.installed()
    if now.development:
        session.say(f"installed  {now.version}, {now.development}")
        session.say("nothing was changed: update the source it runs from")
        return 0 if parsed.switch("check") else 1
    if os.name == "nt":
        raise Unavailable("update works on Linux and macOS only", hint="use pip")
    session.say(f"installed  {now.version}   {now.prefix}")
    if parsed.switch("rollback"):
        session.say(f"switched   back to {environments.go_back(now)}")
        return 0
    release = _chosen(session, now)
    if release is None:
        return 0
    return _update(session, now, release)


# --- choosing --------------------------------------------------------------------------------


def _chosen(session: Session, now: Installed) -> Release | None:
    """The release to install; None if there is none newer."""
    from paddlecloud.cli.update import sources, versions

    parsed = session.parsed
    if "wheel" in parsed:
        found, where = [sources.of_wheel(parsed.text("wheel"))], parsed.text("wheel")
    else:
        where = _index(session)
        found = sources.of_index(where)
    wanted = parsed.text("to")
    if wanted:
        found = [each for each in found if versions.key_of(each.version) == versions.key_of(wanted)]
        if not found:
            raise NotFound(f"there is no release {wanted} at {where}", field="--to")
    elif not parsed.switch("pre") and "wheel" not in parsed:
        found = [each for each in found if not versions.is_prerelease(each.version)]
    known = [each for each in found if versions.key_of(each.version) is not None]
    newest = max(known, key=lambda each: versions.key_of(each.version) or (), default=None)
    if newest is None:
        raise NotFound(f"there is no release of this program at {where}")
    is_same = versions.key_of(newest.version) == versions.key_of(now.version)
    if is_same or (not wanted and not versions.is_newer(newest.version, now.version)):
        how = "is what is installed" if is_same else "is older; --to installs it all the same"
        session.say(f"available  {newest.version}   {how}")
        return None
    session.say(f"available  {newest.version}   {newest.where}")
    return newest


def _index(session: Session) -> str:
    from paddlecloud.cli.update.sources import VARIABLE
    from paddlecloud.sdk import paddlecli_files as files

    chosen = session.parsed.text("index") or os.environ.get(VARIABLE, "")
    chosen = chosen or files.read_value(files.config_file(), "update", "index")
    if not chosen:
        raise InvalidInput(
            "no index is configured",
            field="--index",
            hint=f"give --index or --wheel, or set {VARIABLE}",
        )
    return chosen


def _checksum(session: Session, release: Release) -> tuple[str, str]:
    """(the checksum the wheel must have, who says so)."""
    from paddlecloud.cli.update import sources

    if "sha256" in session.parsed:
        return sources.check_sha256(session.parsed.text("sha256"), "--sha256"), "--sha256"
    if not release.sha256:
        raise InvalidInput(
            f"nobody says which checksum {release.file_name} must have; nothing was installed",
            field="--sha256",
            hint="give --sha256, or put it in a file of that name with .sha256 at its end",
        )
    if sources.is_url(release.said_by) and not sources.is_safe(release.said_by):
        raise InvalidInput(
            "a checksum that came by plain http proves nothing; nothing was installed",
            field="--index",
            hint="use https, or give --sha256",
        )
    return release.sha256, release.said_by


# --- doing -----------------------------------------------------------------------------------


def _update(session: Session, now: Installed, release: Release) -> int:
    import tempfile

    from paddlecloud.cli.update import environments, sources, versions, wheels

    sha256, said_by = _checksum(session, release)
    session.say(f"checksum   sha256 {sha256[:16]}…   by {said_by}")
    environments.check_launchers(now)
    versions_folder = os.path.join(_home(), "versions")
    target = environments.place_for(versions_folder, f"{release.version}-{sha256[:8]}")
    with tempfile.TemporaryDirectory(prefix="paddlecloud-update-") as folder:
        wheel = wheels.opened(sources.fetch(release, folder), sha256)
        python = ".".join(map(str, sys.version_info[:3]))
        if not versions.satisfies(python, wheel.requires_python):
            needs = wheel.requires_python
            raise Conflict(f"{wheel.version} needs Python {needs}; this is {python}")
        if session.parsed.switch("check"):
            session.say("checked    the file is whole; nothing was installed")
            session.say(f"would      install it into {target}")
            for path in now.launchers:
                session.say(f"would      switch {path} to it")
            return 0
        session.flush()
        new_python = environments.make(now, wheel, target, _pip_source(session, release))
    environments.switch(now, release.version, target, new_python)
    session.say(f"switched   to {release.version}   {target}")
    session.say("next       paddlecloud down && paddlecloud up, if a platform runs on this machine")
    return 0


def _pip_source(session: Session, release: Release) -> list[str]:
    """Where pip finds what the release needs besides itself."""
    from paddlecloud.cli.update import sources

    if sources.is_url(release.where):
        return ["-i", _index(session)]
    return ["--no-index", "-f", os.path.dirname(release.where)]


def _home() -> str:
    chosen = os.environ.get("PADDLECLOUD_HOME", "")
    return os.path.expanduser(chosen or os.path.join("~", ".paddlecloud"))
