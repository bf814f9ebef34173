"""The second client: its grammar, its help, what it sends, and its answers to 1.x and to 2.x."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.shapes import ended, job, page, replica
from tests.scripted_server import Answer, Request, ScriptedServer

ID = "job-4f1c09d2a7b35e60"
OTHER = "job-0a1b2c3d4e5f6071"
TRAIN = ("train", "--job-name", "a_b:1", "--start-cmd", "python t.py")
CHECKS = (
    "Start checking your job configuration, please be patient.\n"
    "Congratulations! Job configuration check passed!\n"
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and no settings of an old client."""
    monkeypatch.setenv("PADDLECLI_HOME", str(tmp_path / "paddlecli"))
    monkeypatch.delenv("PADDLECLOUD_JOB_COMPAT", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def full(
    name: str = "a-b-1-1f2e3d", title: str = "a_b:1", notes: Any = None, **changes: Any
) -> dict[str, Any]:
    """A job of the second client as the server knows it."""
    spec = {
        "runtime": "",
        "entry": "exec sh start.sh 'python t.py'",
        "annotations": {"job-name": title, **(notes or {})},
    }
    return {**job(name, mode="single", **changes), "spec": spec}


def accept(server: ScriptedServer) -> list[dict[str, Any]]:
    """Take packages and jobs; the bodies of the jobs, and the packages' bytes under `bytes`."""
    sent: list[dict[str, Any]] = []
    original = server.answer

    def answer(request: Request) -> Answer:
        if "/packages/" in request.path:
            if request.method == "PUT":
                sent.append({"bytes": request.body})
            return Answer(None, 404) if request.method == "HEAD" else Answer({}, 201)
        return original(request)

    def create(request: Request) -> Answer:
        sent.append(request.json)
        return Answer(job(request.json["name"], phase="Submitted"), 201)

    server.answer = answer  # type: ignore[method-assign]
    server.routes["POST /api/v2/jobs"] = create
    server.routes["GET /api/v2/runtimes"] = Answer({"items": [{"name": "paddle-v2.4.1"}]})
    server.routes["GET /api/v2/whoami"] = Answer({"name": "alice", "clusters": ["local"]})
    return sent


# --- help and grammar ------------------------------------------------------------------------

JOB_HELP = """\
usage: paddlecloud job [-h] [--debug] [--server <ARG>] [--port <ARG>]
                       [--ak <ARG>] [--sk <ARG>]
                       <action> [options] ...

optional arguments:
  -h, --help          show this help message and exit
  --debug             debug mode, this will print debug message
  --server <ARG>      specify remote server host
  --port <ARG>        specify remote server port
  --ak <ARG>          your access key
  --sk <ARG>          your secret key

Specific job actions:
  <action> [options]
    train             add a new job for training
    state             return the job state
    list              list available jobs
    rerun             run job once again
    info              display the job info
    kill              kill the running job
    delete            delete the remote job
    replace           replace job 例:${JOB_ID}  --pods "pod=job-x-trainer-1,host=host1.yq01.\
baidu.com;pod=job-x-trainer-2,host=host2.yq01.baidu.com"
"""
CONFIG_HELP = """\
usage: paddlecloud config [-h] [--ak <ARG>] [--sk <ARG>] [-t] [-s]

optional arguments:
  -h, --help    show this help message and exit
  --ak <ARG>    your access key
  --sk <ARG>    your secret key
  -t, --token   configure user's access key and secret key (deprecated, will
                be removed in next version)
  -s, --server  configure paddlecloud server host, port
"""


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_helps_in_the_words_of_the_manual(run: Run, word: str) -> None:
    assert run("job", word).out == JOB_HELP
    assert run("config", word).out == CONFIG_HELP


def test_the_help_of_train_names_every_flag(run: Run) -> None:
    from paddlecloud.forms.train_options import FLAGS

    ran = run("job", "train", "-h")
    assert ran.out.startswith("usage: paddlecloud job train --job-name NAME")
    assert all(name in ran.out for flag in FLAGS for name in flag.names)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "too few arguments"),
        (
            ("trian",),
            2,
            "Oops, 'trian' is not a valid command or arg. See 'paddlecloud job --help'",
        ),
        (("trian",), 2, "did you mean train?"),
        (("--nonsense", "list"), 2, "--nonsense"),
        (("--compat", "3", "list"), 2, "must be one of 1, 2"),
        (("list", "--nonsense"), 2, "unknown option"),
        (("list", "--page", "0"), 2, "--page 0    must be a whole number"),
        (("list", "--type", "all"), 2, "must be one of normal, favorite, group"),
        (("state",), 2, "state which job?"),
        (("state", "a", "b"), 2, "state takes one job, not 2"),
        (("kill",), 2, "kill which job?"),
        (("kill", ",", " "), 2, "kill which job?"),
        (("replace", ID), 1, "Error occurred: replace is not there yet; nothing was done"),
        (("--ak", "a/b", "--sk", "c", "state", ID), 2, "--ak must be letters and digits only"),
        (("--server", "h", "--port", "x", "state", ID), 2, "--port must be a number from 1"),
    ],
)
def test_refuses_a_command_line(
    server: ScriptedServer, run: Run, words: tuple[str, ...], code: int, said: str
) -> None:
    ran = run("job", *words)
    assert ran.code == code
    assert said in ran.err
    assert server.requests == []


def test_nothing_but_unknown_options_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    assert run("job", *TRAIN, "--nonsense", "1").code == 1
    assert run("job", *TRAIN, "--nonsense", "1", "--k8s-trainers", "x").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--ak", "a1", "--sk", "s1"),
        ("--user-ak=a1", "--user-sk=s1"),
        ("--user_ak", "a1", "--user_sk", "s1", "--debug"),
    ],
)
def test_connection_flags_stand_before_the_action(
    server: ScriptedServer, run: Run, words: tuple[str, ...]
) -> None:
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    ran = run("job", *words, "state", ID)
    assert (ran.code, '"jobStatus": "fail"' in ran.out) == (0, True)
    assert ran.err == "note: this server has no access keys; logged in as ~/.paddle/config says\n"


def test_server_and_port_choose_the_server(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLECLOUD_ENDPOINT", "http://127.0.0.1:1")
    host, _, port = server.url.removeprefix("http://").partition(":")
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    assert run("job", "--server", host, "--port", port, "state", ID).code == 0
    ran = run("job", "--server", host, "state", ID)
    assert ran.code == 1
    assert "note: --server is used only together with --port" in ran.err
    assert "Error occurred: no server answers" in ran.err


def test_the_file_of_the_old_client_chooses_the_server(
    server: ScriptedServer, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PADDLECLOUD_ENDPOINT")
    host, _, port = server.url.removeprefix("http://").partition(":")
    folder = tmp_path / "paddlecli"
    folder.mkdir()
    (folder / "config").write_text(f"[server]\nhost = {host}\nport = {port}\n")
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase="Failed"))
    assert run("job", "state", ID).code == 0


# --- train -----------------------------------------------------------------------------------


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
        assert text in package["bytes"]
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
    assert b"env_run/deep/a.py" in sent[0]["bytes"]


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
    body = {"code": "cannot_fit", "message": "gpu: 8 asked for,\n0 there", "hint": "", "field": ""}
    server.routes["POST /api/v2/jobs"] = Answer(body, 422)
    ran = run("job", *TRAIN)
    assert ran.code == 1
    assert ran.out == (
        CHECKS + "Oops...The job submission aborted due to error, gpu: 8 asked for, 0 there\n"
    )


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


# --- asking ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("Submitted", "submit"),
        ("Starting", "schedule"),
        ("Queued", "queue"),
        ("Preempted", "queue"),
        ("Suspended", "queue"),
        ("Running", "running"),
        ("Rescaling", "running"),
        ("Succeeded", "success"),
        ("Failed", "fail"),
        ("Killed", "killed"),
        ("TimedOut", "killed"),
    ],
)
def test_says_the_state_in_the_words_of_the_old_client(
    server: ScriptedServer, run: Run, phase: str, word: str
) -> None:
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(phase=phase))
    server.routes[f"GET /api/v2/jobs/{ID}/events"] = Answer({"items": [], "next": None})
    answer = json.loads(run("job", "state", ID).out)
    assert answer == {"jobId": ID, "jobStatus": word, "usedTime": 39}
    old = json.loads(run("job", "--compat", "1", "state", ID).out)
    assert old == {"code": 0, "data": {"jobStatus": word}, "message": "success"}


def test_a_job_that_is_being_killed_says_so(server: ScriptedServer, run: Run) -> None:
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(run=2))
    events = [{"reason": "KillAsked", "run": 1}, {"reason": "KillAsked", "run": 2}]
    server.routes[f"GET /api/v2/jobs/{ID}/events"] = Answer({"items": events, "next": None})
    assert '"jobStatus": "killing"' in run("job", "state", ID).out
    server.routes[f"GET /api/v2/jobs/{ID}/events"] = Answer({"items": events[:1], "next": None})
    assert '"jobStatus": "running"' in run("job", "state", ID).out


def test_tells_all_about_a_job(server: ScriptedServer, run: Run) -> None:
    notes = {"group": "g", "tags": "x", "remark": "训练", "permission": "group"}
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(full(notes=notes, phase="Failed"))
    server.routes[f"GET /api/v2/jobs/{ID}/replicas"] = Answer(
        {"items": [replica("a-b-1-1f2e3d-trainer-0"), replica("a-b-1-1f2e3d-pserver-0")]}
    )
    out = run("job", "info", ID).out
    found = json.loads(out)
    assert (
        found.items()
        >= {
            "jobName": "a_b:1",
            "jobStatus": "fail",
            "groupName": "g",
            "jobTags": "x",
            "jobAuth": "group",
            "startCMD": "python t.py",
        }.items()
    )
    assert "训练" in out
    assert found["trainerList"] == [
        {
            "resourceName": f"{ID}-trainer-0",
            "status": "Running",
            "host": "127.0.0.2",
            "logUrl": f"{server.url}/api/v2/jobs/{ID}/logs?replica=trainer-0",
        }
    ]
    assert len(found["pserverList"]) == 1
    assert "jobConf" not in found
    old = json.loads(run("job", "--compat", "1", "info", ID).out)
    assert (old["code"], old["data"]) == (0, found)


@pytest.fixture
def two_jobs(server: ScriptedServer) -> ScriptedServer:
    one = full(id=ID)
    two = {**ended("plain", id=OTHER), "spec": {"annotations": {}}}
    server.routes["GET /api/v2/jobs"] = page(one, two)
    server.routes[f"GET /api/v2/jobs/{ID}"] = Answer(one)
    server.routes[f"GET /api/v2/jobs/{OTHER}"] = Answer(two)
    return server


LISTED = """\
*************************** 1. row ***************************
      jobId{0}job-4f1c09d2a7b35e60
    jobName{0}a_b:1
  jobStatus{0}running
  groupName{0}alice
clusterName{0}local
     userId{0}alice
 createTime{0}2026-11-15 07:59:19
  startTime{0}2026-11-15 07:59:20
    endTime{1}
   usedTime{0}39
*************************** 2. row ***************************
      jobId{0}job-0a1b2c3d4e5f6071
    jobName{0}plain
  jobStatus{0}success
  groupName{0}alice
clusterName{0}local
     userId{0}alice
 createTime{0}2026-11-15 07:59:19
  startTime{0}2026-11-15 07:59:20
    endTime{0}2026-11-15 07:59:50
   usedTime{0}29
"""


def test_lists_as_either_generation_did(two_jobs: ScriptedServer, run: Run) -> None:
    assert run("job", "list").out == LISTED.format(": ", ":")
    assert run("job", "--compat", "1", "list").out == LISTED.format(" : ", " :")


def test_lists_for_programs(two_jobs: ScriptedServer, run: Run) -> None:
    found = json.loads(run("job", "list", "--json").out)
    assert [each["jobId"] for each in found["jobs"]] == [ID, OTHER]
    old = json.loads(run("job", "--compat", "1", "list", "--json").out)
    assert (old["code"], old["data"]) == (0, found)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--size", "1"), [ID]),
        (("--size", "1", "--page", "2"), [OTHER]),
        (("--page", "2"), []),
        (("--type", "favorite"), []),
        (("--type=group",), [ID, OTHER]),
        (("--job-name", "a_b:1"), [ID]),
        (("--job-name", "plain"), [OTHER]),
        (("--job-name", "a.b.1"), []),  # the same plain name, another name
    ],
)
def test_lists_a_part(
    two_jobs: ScriptedServer, run: Run, words: tuple[str, ...], ids: list[str]
) -> None:
    found = json.loads(run("job", "list", "--json", *words).out)
    assert [each["jobId"] for each in found["jobs"]] == ids


@pytest.mark.parametrize("compat", ["1", "2"])
def test_an_empty_list_says_so(server: ScriptedServer, run: Run, compat: str) -> None:
    server.routes["GET /api/v2/jobs"] = page()
    assert run("job", "--compat", compat, "list").out == "No data.\n"


# --- orders ----------------------------------------------------------------------------------

_ROUTES = {
    "kill": "POST /api/v2/jobs/{}/cancel",
    "rerun": "POST /api/v2/jobs/{}/rerun",
    "delete": "DELETE /api/v2/jobs/{}",
}


@pytest.mark.parametrize("action", _ROUTES)
@pytest.mark.parametrize(
    "words",
    [
        (f"{ID},{OTHER}",),
        (f"{ID},", OTHER),
        (ID, OTHER),
        (f"{ID} , {OTHER}",),
        (ID, ",", OTHER, ID),
    ],
)
def test_orders_jobs_however_they_are_listed(
    two_jobs: ScriptedServer, run: Run, action: str, words: tuple[str, ...]
) -> None:
    for each in (ID, OTHER):
        two_jobs.routes[_ROUTES[action].format(each)] = Answer(full())
    ran = run("job", action, *words)
    answer = {"code": 0, "data": {"jobIds": [ID, OTHER]}, "message": "success"}
    assert (ran.code, ran.err, json.loads(ran.out)) == (0, "", answer)
    assert len([r for r in two_jobs.requests if r.method != "GET"]) == 2


def test_an_order_is_carried_out_where_it_can_be(two_jobs: ScriptedServer, run: Run) -> None:
    body = {"code": "not_found", "message": "no job job-x", "hint": "", "field": ""}
    two_jobs.routes["GET /api/v2/jobs/job-x"] = Answer(body, 404)
    two_jobs.routes[f"POST /api/v2/jobs/{OTHER}/cancel"] = Answer(full())
    ran = run("job", "kill", "job-x", OTHER)
    assert ran.code == 1
    assert json.loads(ran.out) == {
        "code": 1,
        "data": {"jobIds": [OTHER], "failed": [{"jobId": "job-x", "message": "no job job-x"}]},
        "message": "no job job-x",
    }
    assert ran.err == "Error occurred: no job job-x\n"


def test_a_job_that_is_not_there_is_exit_code_1(server: ScriptedServer, run: Run) -> None:
    body = {"code": "not_found", "message": "no job x", "hint": "look again", "field": ""}
    server.routes["GET /api/v2/jobs/x"] = Answer(body, 404)
    ran = run("job", "state", "x")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "Error occurred: no job x\nhint:  look again\n"


# --- config ----------------------------------------------------------------------------------


def stored(tmp_path: Path) -> str:
    return (tmp_path / "paddlecli" / "config").read_text()


def test_keeps_a_key_pair(run: Run, tmp_path: Path) -> None:
    ran = run("config", "--ak", "a1", "--sk", "s1")
    assert (ran.code, ran.out) == (0, "Configure done.\n")
    assert stored(tmp_path) == "[token]\ntoken_name = default\nuser_ak = a1\nuser_sk = s1\n\n"
    assert (tmp_path / "paddlecli" / "config").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ak", "a1"), "--ak needs --sk beside it"),
        (("--ak", "a1", "--sk", "s 1"), "--sk must be letters and digits only"),
        (("--ak", "", "--sk", "s1"), "--ak must be letters and digits only"),
    ],
)
def test_refuses_half_a_key_pair(
    run: Run, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    ran = run("config", *words)
    assert (ran.code, said in ran.err) == (2, True)
    assert not (tmp_path / "paddlecli").exists()


def test_asks_for_what_it_needs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = iter(["", "a1", "s1", "h", "", "", "", "s2", "", "8080"])
    prompts: list[str] = []

    def answer(prompt: str) -> str:
        prompts.append(prompt)
        return next(typed)

    monkeypatch.setattr("builtins.input", answer)
    assert run("config", "-t", "-s").out == "Configure done.\n"
    assert "host = h\nport = 80\n" in stored(tmp_path)
    # Enter keeps what was there.
    assert run("config", "-t", "--server").code == 0
    assert "user_ak = a1\nuser_sk = s2\n" in stored(tmp_path)
    assert "host = h\nport = 8080\n" in stored(tmp_path)
    assert not any("a1" in prompt or "s1" in prompt for prompt in prompts)


def test_a_file_that_is_no_ini_is_refused_without_being_shown(run: Run, tmp_path: Path) -> None:
    (tmp_path / "paddlecli").mkdir()
    (tmp_path / "paddlecli" / "config").write_text("user_sk = hunter2\n")
    ran = run("config", "-s")
    assert ran.code == 2
    assert "it is not an INI file" in ran.err
    assert "hunter2" not in ran.err
