"""`submit`: what it prints, what it sends, how it follows, and how it fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.shapes import counts, ended, failure, job
from tests.cli.taking import take_packages
from tests.scripted_server import Answer, Request, ScriptedServer

ID = "job-4f1c09d2a7b35e60"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pkg"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "pack").write_bytes(b"x" * 212_000)
    (folder / "train.py").write_bytes(b"#" * 83_000)
    return folder


def accept(server: ScriptedServer, *, has_package: bool = False, has: int = 0) -> None:
    take_packages(server, has_all=has_package, has=has)
    server.routes["POST /api/v2/jobs"] = lambda request: Answer(
        job(request.json["name"], phase="Submitted"), 201
    )


def test_prints_the_three_steps(server: ScriptedServer, run: Run, package: Path) -> None:
    accept(server)
    ran = run("submit", "-jobname", "wide-deep", "-entry", "python train.py", str(package))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Collecting package ... Done            1 file, 83 kB (skipped .git, 212 kB)\n"
        "Uploading package ... Done             83 kB sent\n"
        f"Starting job wide-deep ... Done        {ID}\n"
        "2 trainers + 2 pservers; for trainers only: --mode collective\n"
    )


@pytest.mark.parametrize(
    ("words", "roles", "line"),
    [
        (
            (),
            {"trainer": 1, "pserver": 1},
            "1 trainer + 1 pserver; for one program only: --mode single",
        ),
        (
            ("-p", "2"),
            {"trainer": 2, "pserver": 2},
            "2 trainers + 2 pservers; for trainers only: --mode collective",
        ),
        (("-pservers", "1"), {"trainer": 1, "pserver": 1}, "1 trainer + 1 pserver"),
        (("-pscpu", "2"), {"trainer": 1, "pserver": 1}, "1 trainer + 1 pserver"),
        (("--mode", "ps"), {"trainer": 1, "pserver": 1}, "1 trainer + 1 pserver"),
        (("--mode", "collective", "-p", "3"), {"trainer": 3, "pserver": 0}, "3 trainers"),
        (("--mode", "single"), {"trainer": 1}, ""),
    ],
)
def test_says_what_starts_and_how_to_do_without_servers_nobody_asked_for(
    server: ScriptedServer,
    run: Run,
    package: Path,
    words: tuple[str, ...],
    roles: dict[str, int],
    line: str,
) -> None:
    accept(server, has_package=True)
    shape = {role: counts(wanted) for role, wanted in roles.items()}
    server.routes["POST /api/v2/jobs"] = Answer(job(roles=shape), 201)
    ran = run("submit", "-entry", "x", *words, str(package))
    assert ran.out.splitlines()[3:] == ([line] if line else [])
    assert "trainer" not in run("submit", "-entry", "x", *words, "-o", "name", str(package)).out


def test_sends_nothing_the_server_has(server: ScriptedServer, run: Run, package: Path) -> None:
    accept(server, has_package=True)
    ran = run("submit", "-entry", "x", str(package))
    assert "Uploading package ... Done             83 kB already there\n" in ran.out
    assert not server.asked("POST", "/api/v2/pfs/blobs")


def test_says_how_little_of_a_known_package_was_sent(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    (package / "util.py").write_bytes(b"changed")
    accept(server, has=1)
    ran = run("submit", "-entry", "x", str(package))
    assert "package ... Done             sent 7 B of 83 kB, the rest was there\n" in ran.out


def test_says_what_makes_a_package_large_before_it_is_sent(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    (package / "data").mkdir()
    with (package / "data" / "big").open("wb") as file:
        file.truncate(120_000_000)
    accept(server, has_package=True)
    ran = run("submit", "-entry", "x", str(package))
    assert "note: most of it is data/ (120 MB), train.py (83 kB); .paddleignore" in ran.err


def test_the_package_may_stand_anywhere(server: ScriptedServer, run: Run, package: Path) -> None:
    accept(server, has_package=True)
    words = ("-p", "4", "-c", "2", "-m", "10Gi", "-t", "modules/train.py")
    forms = []
    for line in (
        (str(package), *words),
        (*words, str(package)),
        (*words[:4], str(package), *words[4:]),
    ):
        assert run("submit", *line).code == 0
        forms.append(server.asked("POST", "/api/v2/jobs")[-1].json)
    assert forms[0] == forms[1] == forms[2]
    expected = {"parallelism": 4, "cpu": 2, "memory": "10Gi", "topology": "modules/train.py"}
    assert forms[0].items() >= {**expected, "pservers": 4, "name": "paddle-cluster-job"}.items()
    assert len(forms[0]["package_digest"]) == 64


def test_a_pfs_package_is_used_in_place(server: ScriptedServer, run: Run) -> None:
    accept(server)
    ran = run("submit", "-entry", "x", "/pfs/local/home/alice/pkg")
    assert ran.out.splitlines()[0] == f"Starting job paddle-cluster-job ... Done  {ID}"
    (sent,) = server.requests
    assert sent.json["job_package"] == "/pfs/local/home/alice/pkg"
    server.routes["GET /api/v2/status"] = Answer({"cluster": "dc2", "account": "bob"})
    assert run("submit", "-entry", "x", "~/pkg").code == 0
    assert server.requests[-1].json["job_package"] == "/pfs/dc2/home/bob/pkg"
    assert sent.json["package_digest"] == ""


def test_all_faults_at_once_and_nothing_is_sent(server: ScriptedServer, run: Run) -> None:
    ran = run("submit", "-memory", "10GB", "-parallelism", "two", "./pkg")
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err == (
        "error: 2 problems, nothing was submitted\n"
        "  -memory 10GB        unknown suffix GB; write 10Gi (binary) or 10G (decimal)\n"
        "  -parallelism two    must be a whole number from 1 to 10000\n"
        "usage: paddlecloud submit [options] <package path>     (paddlecloud submit --help)\n"
    )
    assert server.requests == []


def test_refuses_a_folder_that_is_not_there(server: ScriptedServer, run: Run) -> None:
    ran = run("submit", "-entry", "x", "./no-such-folder")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: there is no folder ./no-such-folder\nhint:  ")


def test_says_which_step_failed(server: ScriptedServer, run: Run, package: Path) -> None:
    accept(server)
    message = {"code": "conflict", "message": "a job named x is live", "hint": "", "field": ""}
    server.routes["POST /api/v2/jobs"] = Answer(message, 409)
    ran = run("submit", "-jobname", "x", "-entry", "x", str(package))
    assert ran.code == 5
    assert ran.out.endswith("Starting job x ... failed\n")
    assert ran.err == "error: a job named x is live\n"


@pytest.mark.parametrize("form", ["json", "name"])
def test_for_programs_it_prints_the_job_only(
    server: ScriptedServer, run: Run, package: Path, form: str
) -> None:
    accept(server)
    out = run("submit", "-entry", "x", "-o", form, "-jobname", "x", str(package)).out
    assert (json.loads(out)["id"] if form == "json" else out) == (ID if form == "json" else "x\n")


# --- staying with it -------------------------------------------------------------------------


def stream(*records: dict[str, object]) -> Answer:
    return Answer(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def record(replica: str, cursor: int, data: str) -> dict[str, object]:
    return {"replica": replica, "attempt": 1, "cursor": cursor, "data": data}


def test_follow_prints_whole_lines_with_who_wrote_them(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    accept(server)
    server.routes[f"GET /api/v2/jobs/{ID}/wait"] = [Answer(job()), Answer(ended())]
    server.routes[f"GET /api/v2/jobs/{ID}/logs"] = stream(
        record("pserver-0", 10, "listening on 127.0.0.2:36001\n"),
        record("trainer-0", 10, "epoch 0 st"),
        record("trainer-1", 10, "epoch 0 step 100 loss 0.6127\n"),
        record("trainer-0", 20, "ep 100 loss 0.6113\nno end"),
        {"replica": "trainer-1", "attempt": 1, "dropped_bytes": 4096},
        {"end": True, "phase": "Succeeded"},
    )
    ran = run("submit", "-entry", "x", "--follow", "-jobname", "wide-deep", str(package))
    assert ran.out.splitlines()[4:] == [
        "pserver-0   | listening on 127.0.0.2:36001",
        "trainer-1   | epoch 0 step 100 loss 0.6127",
        "trainer-0   | epoch 0 step 100 loss 0.6113",
        "trainer-1   | [... 4096 bytes dropped ...]",
        "trainer-0   | no end",
        "wide-deep  Succeeded  after 29s",
    ]
    assert ran.code == 0


@pytest.mark.parametrize(
    ("end", "code", "line"),
    [
        (ended(), 0, "wide-deep  Succeeded  after 29s"),
        (
            ended(phase="Failed", failure=failure()),
            10,
            "wide-deep  Failed  exit 1 in trainer-1, 29s after start  "
            "paddlecloud describe wide-deep",
        ),
        (
            ended(phase="Killed", reason="killed by bob"),
            10,
            "wide-deep  Killed  killed by bob  after 29s",
        ),
        (
            ended(phase="TimedOut", reason="ran for 30s"),
            10,
            "wide-deep  TimedOut  ran for 30s  after 29s",
        ),
    ],
)
def test_wait_ends_with_the_jobs_result(
    server: ScriptedServer, run: Run, package: Path, end: dict, code: int, line: str
) -> None:
    accept(server)
    server.routes[f"GET /api/v2/jobs/{ID}/wait"] = Answer(end)
    ran = run("submit", "-entry", "x", "--wait", "-jobname", "wide-deep", str(package))
    assert ran.code == code
    assert ran.out.splitlines()[-1] == line


def test_ctrl_c_detaches_and_says_how_to_come_back(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    from tests.cli.test_get import raise_interrupt

    accept(server)

    def interrupt(request: Request) -> Answer:
        raise_interrupt()
        return stream(record("trainer-0", 3, "abc"))

    server.routes[f"GET /api/v2/jobs/{ID}/wait"] = Answer(job())
    server.routes[f"GET /api/v2/jobs/{ID}/logs"] = interrupt
    ran = run("submit", "-entry", "x", "--follow", "-jobname", "wide-deep", str(package))
    assert ran.code == 130
    assert ran.err == (
        "\ndetached; the job goes on.  paddlecloud logs -f wide-deep   ·   "
        "paddlecloud kill wide-deep\n"
    )
    assert not server.asked("POST", f"/api/v2/jobs/{ID}/cancel")


# --- dry run ---------------------------------------------------------------------------------


def test_a_client_dry_run_needs_no_server(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", "http://127.0.0.1:1")
    ran = run(
        *("submit", "--dry-run", "-o", "json", "--mode", "collective", "-p", "2", "-gpu", "4"),
        *("--wall-time", "1:00:00", "--priority", "high", "-entry", "x", "./anything"),
    )
    assert ran.code == 0
    result = json.loads(ran.out)
    assert result["effective"] == {
        "trainers": 2,
        "gpu_total": 8,
        "standalone": False,
        "mode": "collective",
        "ps_num": 0,
        "wall_time_seconds": 3600,
        "unlimited": False,
        "priority": "high",
    }
    assert result["spec"]["entry"] == "x"
    assert {tuple(row) for row in result["understood"]} == {("flag", "value", "meaning")}
    rows = [tuple(row.values()) for row in result["understood"]]
    assert ("-p", "2", "trainers: 2") in rows
    assert ("--wall-time", "1:00:00", "stop after a time: 1:00:00") in rows
    assert ("<package path>", "./anything", "the folder that is sent") in rows
    assert rows[-1] == ("(mode)", "collective", "--mode collective")


def test_a_dry_run_has_the_shape_of_that_of_a_job_train(run: Run) -> None:
    ours = json.loads(run("submit", "--dry-run=client", "-o", "json", "-entry", "x", "./p").out)
    train = ("job", "train", "--job-name", "x", "--start-cmd", "x", "--dry-run", "--json")
    theirs = json.loads(run(*train).out)
    assert ours.keys() == theirs.keys()
    for block in ("spec", "effective"):
        assert ours[block].keys() == theirs[block].keys()
    assert ours["understood"][0].keys() == theirs["understood"][0].keys()


def test_a_server_dry_run_asks_whether_it_fits(server: ScriptedServer, run: Run) -> None:
    from paddlecloud.core import jobspec
    from paddlecloud.forms import submit_flags

    spec = submit_flags.parse(["-p", "2", "-entry", "x", "p"]).spec
    server.routes["POST /api/v2/jobs"] = Answer(
        {
            "spec": jobspec.to_json(spec),
            "effective": {},
            "starts": "later",
            "reason": "cpu is short",
        }
    )
    ran = run("submit", "--dry-run=server", "-p", "2", "-entry", "x", "./p")
    assert "  starts     later: cpu is short\n" in ran.out
    (asked,) = server.requests
    assert asked.query == {"dry_run": "1"}


def test_a_dry_run_prints_a_line_to_copy(run: Run) -> None:
    import shlex

    from paddlecloud.forms import submit_flags

    words = ["-p", "2", "-entry", "python 'a b.py'", "./p"]
    out = run("submit", "--dry-run", *words).out
    line = next(line for line in out.splitlines() if "in full" in line).split("in full")[1]
    again = shlex.split(line)[2:]
    assert submit_flags.parse(again).spec == submit_flags.parse(words).spec


@pytest.mark.parametrize("form", [(), ("-o", "json"), ("-o", "yaml")])
def test_a_dry_run_shows_no_secret(run: Run, form: tuple[str, ...]) -> None:
    words = ("--env", "MY_TOKEN=hidden-words", "--env", "EPOCHS=shown-words", "-entry", "x", "./p")
    out = run("submit", "--dry-run", *form, *words).out
    assert "shown-words" in out
    assert "hidden-words" not in out


# --- refusals of the server --------------------------------------------------------------------

NEEDS = "a trainer needs 900Gi memory, the cluster has 23Gi"


def _cannot_fit() -> Answer:
    faults = [
        {"field": "memory", "problem": NEEDS, "value": "900Gi"},
        {"field": "pscpu", "problem": "a pserver needs 64 cpu", "value": "64"},
    ]
    body = {
        "code": "cannot_fit",
        "message": "memory: ...",
        "hint": "paddlecloud status",
        "field": "",
    }
    return Answer({**body, "faults": faults}, 422)


def test_a_refusal_of_the_server_names_the_flags_that_were_typed(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    accept(server, has_package=True)
    server.routes["POST /api/v2/jobs"] = _cannot_fit()
    ran = run("submit", "-m", "900Gi", "-entry", "x", str(package))
    assert ran.code == 1
    assert ran.err == (
        f"error: -m: {NEEDS}; -pscpu: a pserver needs 64 cpu\nhint:  paddlecloud status\n"
    )


@pytest.mark.parametrize(
    ("key", "words", "shown"),
    [
        ("image", ["--runtime", "np"], "--runtime"),
        ("runtime", [], "-image"),
        ("wall_time_s", ["--wall-time", "2h"], "--wall-time"),
        ("name", ["-name", "a"], "-name"),
        ("jobPackage", [], "<package path>"),
        ("package_digest", [], "package_digest"),
        ("nothing-we-know", [], "nothing-we-know"),
    ],
)
def test_every_key_with_a_flag_is_shown_as_the_flag(
    server: ScriptedServer, run: Run, package: Path, key: str, words: list[str], shown: str
) -> None:
    accept(server, has_package=True)
    faults = [{"field": key, "problem": "is wrong", "value": "v"}]
    body = {"code": "invalid_input", "message": "m", "hint": "", "field": key, "faults": faults}
    server.routes["POST /api/v2/jobs"] = Answer(body, 400)
    ran = run("submit", *words, "-entry", "x", str(package))
    assert ran.code == 2
    assert ran.err.splitlines()[1] == f"  {shown} v    is wrong"


def test_a_large_package_is_not_sent_for_a_job_that_is_refused(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    (package / "data.bin").write_bytes(b"x" * (1 << 20))
    accept(server)
    server.routes["POST /api/v2/jobs"] = _cannot_fit()
    ran = run("submit", "-memory", "900Gi", "-entry", "x", str(package))
    assert ran.code == 1
    assert f"error: -memory: {NEEDS}" in ran.err
    (asked,) = server.requests
    assert (asked.method, asked.query) == ("POST", {"dry_run": "1"})


def test_a_small_package_is_sent_without_asking_first(
    server: ScriptedServer, run: Run, package: Path
) -> None:
    accept(server)
    assert run("submit", "-entry", "x", str(package)).code == 0
    asked = [request.path.rpartition("/")[2] for request in server.requests]
    assert asked == ["status", "snapshots", "blobs", "snapshots", "jobs"]
    assert server.requests[-1].query == {}
