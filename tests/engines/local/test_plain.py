"""Without a sandbox the same facts come by variables, on the host's paths."""

from __future__ import annotations

import os

import pytest

from tests.engines.local.bench import PLAIN, Bench


@pytest.fixture(params=PLAIN)
def bench(request: pytest.FixtureRequest, make_bench) -> Bench:
    return make_bench(request.param)


def test_pfs_paths_in_variables_become_the_hosts(bench: Bench):
    home = bench.home()
    told = dict(
        line.split("=", 1)
        for line in bench.output_of(
            "env",
            env={
                "TRAINER_PACKAGE": "/pfs/local/home/ann/jobs/x",
                "OUTPUT_PATH": "/pfs/local/home/ann/jobs/x/output",
                "PYTHONPATH": "/pfs/local/home/ann/lib:/pfs/local/public/lib:/opt/x",
                "NEIGHBOUR": "/pfs/local/home/anna/x",
                "OTHER": "/pfs/local/home/bob",
                "QUOTED": "--data='/pfs/local/home/ann'",
            },
        ).splitlines()
    )
    public = bench.root / "pfs" / "public"
    assert told["TRAINER_PACKAGE"] == f"{home}/jobs/x"
    assert told["OUTPUT_PATH"] == f"{home}/jobs/x/output"
    assert told["PYTHONPATH"].startswith(f"{home}/lib:{public}/lib:/opt/x:")
    assert told["NEIGHBOUR"] == "/pfs/local/home/anna/x"
    assert told["OTHER"] == "/pfs/local/home/bob"
    assert told["QUOTED"] == f"--data='{home}'"


def test_home_working_directory_and_scratch_are_there(bench: Bench):
    text = bench.output_of('pwd; echo "$HOME"; echo "$PADDLECLOUD_PFS_HOME"; touch "$TMPDIR/x"')
    assert text.split() == [str(bench.home() / "jobs" / "x"), str(bench.home()), str(bench.home())]


def test_the_platform_says_what_is_missing(bench: Bench):
    assert not bench.processes.sandboxed
    notes = " ".join(bench.processes.notes())
    assert "no sandbox (switched off)" in notes
    assert "one user" in notes


def test_nothing_of_the_platforms_descriptors_is_inherited(bench: Bench):
    assert bench.output_of("ls /proc/self/fd | wc -l") == "4\n"  # three, and the one ls opens


def test_the_log_is_read_only_for_whoever_opens_it_anew(bench: Bench):
    """Else `echo lost > /dev/stderr` would empty it. (Nothing keeps root from it.)"""
    key = bench.start("echo one; (echo two > /dev/stderr) 2>/dev/null; echo three")
    bench.exit_of(key)
    assert bench.processes.log_path(key).stat().st_mode & 0o777 == 0o400
    if os.geteuid() != 0:
        assert bench.log(key) == "one\nthree\n"
