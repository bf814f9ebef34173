"""Runtimes are Python environments: found, made visible, put first on the path."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.core.observed import EndCause
from paddlecloud.engines.local import runtimes
from paddlecloud.engines.local.runtimes import Runtime, RuntimeMissing
from tests.engines.local.bench import EVERY_WAY, Bench

STATE = Path("/nowhere/state")


def find_runtime(name: str, known: dict[str, Path], state_dir: Path = STATE) -> Runtime:
    return runtimes.find_runtime(name, known, state_dir)


def make_prefix(path: Path, home: str = "") -> Path:
    (path / "bin").mkdir(parents=True)
    (path / "bin" / "python").symlink_to(sys.executable)
    if home:
        (path / "pyvenv.cfg").write_text(f"home = {home}\nversion = 3.11\n")
    return path


def test_the_default_is_the_platforms_own_environment():
    runtime = find_runtime("", {})
    assert runtime.prefix == Path(sys.prefix)
    assert runtime.env()["PATH"].startswith(f"{sys.prefix}/bin:")


def test_the_default_may_be_another(tmp_path):
    prefix = make_prefix(tmp_path / "env")
    assert find_runtime("", {"": prefix}).prefix == prefix


def test_a_virtual_environment_brings_the_installation_it_was_made_from(tmp_path):
    base = make_prefix(tmp_path / "base")
    runtime = find_runtime("x", {"x": make_prefix(tmp_path / "env", home=f"{base}/bin")})
    assert runtime.binds == (tmp_path / "env", base)
    assert runtime.env()["VIRTUAL_ENV"] == str(tmp_path / "env")


def test_what_is_below_usr_is_visible_anyway(tmp_path):
    runtime = find_runtime("x", {"x": make_prefix(tmp_path / "env", home="/usr/bin")})
    assert runtime.binds == (tmp_path / "env",)


def test_a_base_of_the_whole_machine_is_where_its_bin_really_is(tmp_path, monkeypatch):
    """A distribution's /bin is a link to /usr/bin, and environments name the link."""
    (tmp_path / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    monkeypatch.setattr(runtimes, "_ROOT", tmp_path)
    runtime = find_runtime("x", {"x": make_prefix(tmp_path / "env", home=f"{tmp_path}/bin")})
    assert runtime.binds == (tmp_path / "env", tmp_path / "usr")


@pytest.mark.parametrize("place", ["home", "homes", "state", "deep", ""])
@pytest.mark.parametrize("how", ["prefix", "base"])
def test_a_runtime_that_would_show_jobs_more_than_itself_is_refused(
    tmp_path, monkeypatch, place: str, how: str
):
    places = {name: tmp_path / name for name in ("homes", "deep")}
    places |= {"home": tmp_path / "homes" / "ann", "state": tmp_path / "deep" / "state"}
    for path in places.values():
        path.mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(runtimes, "_homes", lambda: {places["home"]})
    shown = places.get(place, Path("/"))
    if how == "base":
        env = make_prefix(tmp_path / "env", home=str(shown / "bin"))
        monkeypatch.setattr(runtimes, "_ROOT", Path("/no root to look behind"))
        with pytest.raises(RuntimeMissing, match="may not live in"):
            find_runtime("x", {"x": env}, places["state"])
    else:
        with pytest.raises(RuntimeMissing, match="may not live in"):
            runtimes.check_prefix(shown, places["state"])


def test_homes_are_those_of_people_and_roots():
    assert Path("/root").resolve() in runtimes._homes()
    assert Path("/") not in runtimes._homes()


def test_a_prefix_behind_a_link_is_visible_under_both_names(tmp_path):
    real = make_prefix(tmp_path / "real")
    (tmp_path / "link").symlink_to(real)
    assert find_runtime("x", {"x": tmp_path / "link"}).binds == (tmp_path / "link", real)


def test_an_unknown_runtime_is_named_with_those_there_are(tmp_path):
    with pytest.raises(RuntimeMissing, match="no runtime called tf; known: jax, paddle"):
        find_runtime("tf", {"paddle": tmp_path, "jax": tmp_path, "": tmp_path})


def test_a_runtime_that_was_deleted_is_missing(tmp_path):
    prefix = make_prefix(tmp_path / "env")
    find_runtime("x", {"x": prefix})
    (prefix / "bin" / "python").unlink()
    with pytest.raises(RuntimeMissing, match="has no"):
        find_runtime("x", {"x": prefix})


@pytest.fixture(scope="module")
def real_environment(tmp_path_factory) -> Path:
    """A virtual environment in a place no sandbox shows by itself, with a module of its own."""
    path = tmp_path_factory.mktemp("runtime") / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", path], check=True)
    (library,) = path.glob("lib/python*/site-packages")
    (library / "only_here.py").write_text("word = 'found'\n")
    return path


@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_program_runs_with_the_runtime_it_names(make_bench, way: str, real_environment: Path):
    bench: Bench = make_bench(way, runtimes={"mine": real_environment})
    check = "python -c 'import only_here, sys; print(only_here.word, sys.prefix)'"
    assert bench.output_of(check, runtime="mine") == f"found {real_environment}\n"
    assert bench.exit_of(bench.start(check)).code == 1  # the default one has no such module


def test_a_runtime_that_vanished_is_a_failed_start(make_bench, tmp_path):
    bench: Bench = make_bench("plain-without-cgroups", runtimes={"gone": tmp_path / "gone"})
    end = bench.exit_of(bench.start("true", runtime="gone"))
    assert end.cause == EndCause.START_FAILED
    assert "bin/python" in end.message
