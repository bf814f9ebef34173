"""`job train`: what it sends, how it answers scripts of 1.x and of 2.x, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.second_client import ID, TRAIN, accept
from tests.scripted_server import Answer, ScriptedServer

pytestmark = pytest.mark.usefixtures("elsewhere")

CHECKS = (
    "Start checking your job configuration, please be patient.\n"
    "Congratulations! Job configuration check passed!\n"
)


def test_answers_a_2x_script(server: ScriptedServer, run: Run) -> None:
    accept(server)
    ran = run("job", *TRAIN, "--group-name", "g")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        CHECKS + "Congratulations! The new job is ready for training.\n"
        "{\n"
        '    "groupName": "g",\n'
        f'    "jobId": "{ID}",\n'
        '    "userId": "alice"\n'
        "}\n"
    )


def test_answers_a_1x_script(server: ScriptedServer, run: Run, elsewhere: Path) -> None:
    accept(server)
    (elsewhere / "t.py").write_text("")
    (elsewhere / "conf.cfg").write_text("A=1\n")
    ran = run("job", "--compat", "1", *TRAIN, "--files", "t.py", "--job-conf", "conf.cfg")
    assert ran.out == (
        "uploading t.py\n"
        "Congratulations! The new job is ready for training and the returned jobId = " + ID + "\n"
    )


@pytest.mark.parametrize(
    ("words", "generation"),
    [
        ((), 2),
        (("--user-ak", "a", "--user-sk", "s"), 1),
        (("--user-ak", "a", "--user-sk", "s", "--compat", "2"), 2),
        (("--ak", "a", "--sk", "s"), 2),
        (("--compat=1",), 1),
    ],
)
def test_the_generation_is_asked_for_or_told_by_a_spelling(
    server: ScriptedServer, run: Run, words: tuple[str, ...], generation: int
) -> None:
    accept(server)
    out = run("job", *words, *TRAIN).out
    assert ("returned jobId =" in out) == (generation == 1)


def test_the_environment_may_ask_for_a_generation(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept(server)
    monkeypatch.setenv("PADDLECLOUD_JOB_COMPAT", "1")
    assert "returned jobId =" in run("job", *TRAIN).out
    monkeypatch.setenv("PADDLECLOUD_JOB_COMPAT", "x")
    assert run("job", *TRAIN).code == 2


@pytest.mark.parametrize(
    ("compat", "answer"),
    [
        ("1", {"code": 0, "data": {"jobId": ID}, "message": "success"}),
        ("2", {"groupName": "alice", "jobId": ID, "userId": "alice"}),
    ],
)
def test_with_json_it_prints_the_answer_only(
    server: ScriptedServer, run: Run, compat: str, answer: object
) -> None:
    accept(server)
    assert json.loads(run("job", "--compat", compat, *TRAIN, "--json").out) == answer


def test_sends_the_files_the_settings_and_the_command(
    server: ScriptedServer, run: Run, elsewhere: Path
) -> None:
    sent = accept(server)
    (elsewhere / "sub").mkdir()
    (elsewhere / "sub" / "run.sh").write_text("echo run\n")
    (elsewhere / "model").mkdir()
    (elsewhere / "model" / "net.py").write_text("net\n")
    (elsewhere / "model" / ".gitignore").write_text("*.log\n")
    (elsewhere / "model" / "x.log").write_text("not me\n")
    (elsewhere / "config.ini").write_text('FLAGS_x="1"\nfs_ugi = "u,hunter2"\n')
    ran = run(
        *("job", *TRAIN, "--files", "sub/run.sh", "--file-dir", "model"),
        *("--job-conf", "config.ini", "--k8s-trainers", "2", "--distribute-job-type", "NCCL2"),
        *("--job-tags", "t 1", "--is-auto-over-sell", "1"),
    )
    assert ran.code == 0
    package, body = sent
    assert (
        body.items()
        >= {
            "entry": "exec sh start.sh 'python t.py'",
            "mode": "collective",
            "parallelism": 2,
            "env": {"PADDLE_JOB_NAME": "a_b:1", "FLAGS_x": "1"},
            "annotations": {"tags": "t 1", "job-name": "a_b:1"},
            "may_borrow": True,
        }.items()
    )
    assert body["name"].startswith("a-b-1-")
    for text in (b"start.sh", b"env_run/run.sh", b"env_run/model/net.py", b"echo run"):
        assert text in package["names"] + package["bytes"]
    assert b"not me" not in package["bytes"]
    assert b"hunter2" not in package["bytes"] + json.dumps(body).encode()
    assert "hunter2" not in ran.out + ran.err


def test_a_folder_named_dot_is_the_workspace_itself(
    server: ScriptedServer, run: Run, elsewhere: Path
) -> None:
    sent = accept(server)
    (elsewhere / "deep").mkdir()
    (elsewhere / "deep" / "a.py").write_text("")
    assert run("job", *TRAIN, "--file-dir", ".").code == 0
    assert b"env_run/deep/a.py" in sent[0]["names"]


def test_two_jobs_of_one_name_do_not_meet(server: ScriptedServer, run: Run) -> None:
    sent = accept(server)
    run("job", *TRAIN)
    run("job", *TRAIN)
    names = [body["name"] for body in sent if "name" in body]
    assert len(set(names)) == 2


def test_an_unknown_runtime_is_the_default_one_and_that_is_said(
    server: ScriptedServer, run: Run
) -> None:
    sent = accept(server)
    ran = run("job", *TRAIN, "--job-version", "paddle-fluid-v1.8.5")
    assert ran.err == (
        "note: no runtime called paddle-fluid-v1.8.5 here; the default one is used\n"
    )
    assert sent[-1]["image"] == ""
    assert sent[-1]["annotations"]["job-version"] == "paddle-fluid-v1.8.5"
    assert run("job", *TRAIN, "--job-version", "paddle-v2.4.1").err == ""
    assert sent[-1]["image"] == "paddle-v2.4.1"


def test_an_unknown_cluster_is_met_with_those_there_are(server: ScriptedServer, run: Run) -> None:
    sent = accept(server)
    ran = run("job", *TRAIN, "--cluster-name", "yq01", "--skip-config-check")
    assert ran.code == 1
    assert ran.out == (
        "Oops...The named cluster 'yq01' not exists.\n"
        "============\ncluster_name\n------------\nlocal\n"
    )
    assert sent == []


def test_a_refusal_is_one_line_and_exit_code_1(server: ScriptedServer, run: Run) -> None:
    accept(server)
    fault = {"field": "gpu", "problem": "8 asked for,\n0 there", "value": "8"}
    body = {"code": "cannot_fit", "message": "...", "hint": "", "field": "", "faults": [fault]}
    server.routes["POST /api/v2/jobs"] = Answer(body, 422)
    ran = run("job", *TRAIN)
    assert ran.code == 1
    said = "Oops...The job submission aborted due to error"
    assert ran.out == f"{CHECKS}{said}, --k8s-gpu-cards 8 asked for, 0 there\n"
    asked = ("--slurm-nodes", "2", "--slurm_gpu_pnode", "8")
    assert "error, --slurm_gpu_pnode 8 asked for" in run("job", *TRAIN, *asked).out


def test_every_fault_at_once_and_nothing_is_sent(
    server: ScriptedServer, run: Run, elsewhere: Path
) -> None:
    for folder in ("a", "b"):
        (elsewhere / folder).mkdir()
        (elsewhere / folder / "x.py").write_text(folder)
    (elsewhere / "bad.ini").write_text("fs_ugi: u,hunter2\n")
    ran = run(
        *("job", "train", "--k8s-memory", "10GB", "--k8s_trainers", "0.5", "--job-conf", "bad.ini"),
        *("--files", "none.py", "a/x.py", "b/x.py", "--file-dir", "a/x.py"),
    )
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "error: 8 problems, nothing was done\n"
        "  --k8s-memory 10GB     must be digits with Ki, Mi or Gi, such as 512Mi or 10Gi\n"
        "  --k8s_trainers 0.5    must be a whole number from 1 to 10000\n"
        "  --job-name            is missing; write --job-name my_job\n"
        '  --start-cmd           is missing; write --start-cmd "python train.py"\n'
        "  --job-conf            line 1: is not key = value; begin a comment with #\n"
        "  --files none.py       there is no such file\n"
        "  --files b/x.py        would replace a/x.py: both are called x.py\n"
        "  --file-dir a/x.py     is not a folder\n"
        "usage: paddlecloud job [connection flags] <action> [options]     "
        "(paddlecloud job --help)\n"
    )
    assert server.requests == []


def test_a_bad_configuration_file_may_be_passed_over(
    server: ScriptedServer, run: Run, elsewhere: Path
) -> None:
    sent = accept(server)
    (elsewhere / "bad.ini").write_text("what is this\nA=1\n")
    ran = run("job", *TRAIN, "--job-conf", "bad.ini", "--skip-config-check")
    assert ran.code == 0
    assert sent[-1]["env"]["A"] == "1"


def test_a_configuration_file_may_be_in_the_old_encoding(
    server: ScriptedServer, run: Run, elsewhere: Path
) -> None:
    sent = accept(server)
    (elsewhere / "c.ini").write_bytes("# 训练\nA = 值\n".encode("gbk"))
    assert run("job", *TRAIN, "--job-conf", "c.ini").code == 0
    assert sent[-1]["env"]["A"] == "值"


# --- dry run ---------------------------------------------------------------------------------


def test_a_dry_run_needs_no_server(run: Run, elsewhere: Path) -> None:
    (elsewhere / "c.ini").write_text('fs_ugi="u,hunter2"\nMY_TOKEN=hunter2\nA=1\n')
    ran = run(
        *("job", *TRAIN, "--k8s-trainers", "2", "--k8s-gpu-cards", "4", "--wall-time", "00:00:00"),
        *("--job-conf", "c.ini", "--dry-run", "--json"),
    )
    assert (ran.code, ran.err) == (0, "")
    assert "hunter2" not in ran.out
    found = json.loads(ran.out)
    assert found["effective"] == {
        "trainers": 2,
        "gpu_total": 8,
        "standalone": False,
        "mode": "collective",
        "ps_num": 0,
        "wall_time_seconds": None,
        "unlimited": True,
        "priority": "normal",
    }
    assert found["spec"]["name"] == "a_b:1"
    assert found["spec"]["entry"] == "python t.py"
    assert found["spec"]["env"] == {"MY_TOKEN": "******", "A": "1"}
    assert {"flag": "--k8s-trainers", "value": "2", "meaning": "trainers: 2"} in found["understood"]


def test_a_dry_run_explains_itself_to_people(run: Run) -> None:
    out = run("job", *TRAIN, "--k8s-trainers", "2", "--k8s-ps-num", "2", "--dry-run").out
    assert out.startswith(
        "a_b:1: nothing was submitted (dry run)\neffective\n  trainers           2\n"
    )
    assert "  (mode) ps                2 trainers; --k8s-ps-num 2\n" in out


def test_code_that_is_not_there_is_told_before_anything_is_sent(
    server: ScriptedServer, run: Run
) -> None:
    sent = accept(server)
    body = {"code": "not_found", "message": "no such file or directory", "hint": "", "field": ""}
    server.routes["GET /api/v2/pfs/entry"] = Answer(body, 404)
    code = "/pfs/local/home/alice/code.tar.gz"
    ran = run("job", *TRAIN, "--code-uri", code)
    assert (ran.code, sent) == (1, [])
    assert f"error, --code-uri {code}: there is nothing there\n" in ran.out
    server.routes["GET /api/v2/pfs/entry"] = Answer({"type": "file"})
    assert run("job", *TRAIN, "--code-uri", code).code == 0
    asked = [each.query["path"] for each in server.requests if "path" in each.query]
    assert asked == [code, code]
    server.routes["GET /api/v2/status"] = Answer({"cluster": "dc2", "account": "bob"})
    assert run("job", *TRAIN, "--code-uri", "~/code.tar.gz").code == 0
    asked = [each.query["path"] for each in server.requests if "path" in each.query]
    assert asked[2:] == ["/pfs/dc2/home/bob/code.tar.gz"]
