"""Access keys end to end: our client without any token, and a client of the old package."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from paddlecloud.sdk import Client
from tests.e2e.platform import CLI, Platform
from tests.patience import PATIENCE_S
from tests.server.running import Answer
from tests.server.signing import Signer


class Script:
    """A user who has the second client and a key pair, and neither token nor configuration."""

    def __init__(self, platform: Platform, home: Path) -> None:
        self._platform = platform
        self.home = home
        hidden = ("PADDLECLOUD_TOKEN", "PADDLECLOUD_ENDPOINT", "PADDLECLOUD_CONFIG")
        kept = {name: value for name, value in platform.env.items() if name not in hidden}
        self._env = {**kept, "HOME": str(home), "PADDLECLI_HOME": str(home / ".paddlecli")}

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(CLI), *words],
            env=self._env,
            cwd=self.home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )

    def ok(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def status(self, job_id: str) -> str:
        return str(json.loads(self.ok("job", "state", job_id))["jobStatus"])

    def wait(self, job_id: str, *words: str) -> str:
        """As scripts do: asking again and again."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.status(job_id)) not in words:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found


def _key(platform: Platform, *flags: str) -> dict[str, str]:
    made: dict[str, str] = json.loads(platform.ok("account", "key", *flags, "-o", "json"))
    return made


@pytest.fixture
def script(platform: Platform, tmp_path: Path) -> Script:
    user = Script(platform, tmp_path)
    key = _key(platform, "--scope", "submit")
    user.ok("config", "-s", stdin=f"127.0.0.1\n{platform.port}\n")
    user.ok("config", "--ak", key["ak"], "--sk", key["sk"])
    return user


def test_a_script_needs_nothing_but_its_keys(script: Script) -> None:
    (script.home / "train.py").write_text(
        "import os\nprint(len(open('big.bin', 'rb').read()), os.path.exists('before'))\n"
    )
    (script.home / "before_hook.sh").write_text("touch before\n")
    # More than travels in one batch: it goes as a large upload through the server.
    (script.home / "big.bin").write_bytes(os.urandom(9 << 20))
    out = script.ok(
        "job", "train", "--job-name", "我的 job:1", "--start-cmd", "python3 train.py",
        "--files", "train.py", "before_hook.sh", "big.bin", "--k8s-memory", "64Mi",
        "--permission", "group",
    )  # fmt: skip
    assert "Congratulations! The new job is ready for training." in out
    job_id = re.search(r"job-[0-9a-f]{16}", out).group()  # type: ignore[union-attr]
    assert script.wait(job_id, "success", "fail") == "success"

    info = json.loads(script.ok("job", "info", job_id))
    assert (info["jobName"], info["startCMD"]) == ("我的 job:1", "python3 train.py")
    assert re.search(rf"jobId:\s*{job_id}", script.ok("job", "list"))
    assert job_id in script.ok("job", "list", "--type", "group")
    assert job_id not in script.ok("job", "list", "--type", "favorite")
    script.ok("job", "favorite", job_id)
    assert job_id in script.ok("job", "list", "--type", "favorite")
    script.ok("job", "favorite", job_id, "--remove")
    assert job_id not in script.ok("job", "list", "--type", "favorite")

    script.ok("job", "rerun", job_id)
    assert script.wait(job_id, "success", "fail") == "success"
    script.ok("job", "delete", job_id)
    gone = script.run("job", "state", job_id)
    assert (gone.returncode, gone.stderr.startswith("Error occurred: no job")) == (1, True)


def test_kills_what_it_started(script: Script) -> None:
    words = ("--job-name", "x", "--start-cmd", "sleep 300", "--k8s-memory", "64Mi", "--json")
    job_id = json.loads(script.ok("job", "train", *words))["jobId"]
    script.wait(job_id, "running")
    script.ok("job", "kill", job_id)
    assert script.wait(job_id, "killed") == "killed"


def test_flags_are_enough_and_go_before_the_file(
    platform: Platform, script: Script, tmp_path: Path
) -> None:
    key = _key(platform, "--scope", "read")
    where = ("--server", "127.0.0.1", "--port", str(platform.port))
    words = ("job", *where, "--user-ak", key["ak"], "--user-sk", key["sk"])
    assert script.run(*words, "list").returncode == 0
    done = script.run(*words, "train", "--job-name", "x", "--start-cmd", "true")
    assert done.returncode == 1
    assert "Oops...The job submission aborted" in done.stdout
    assert "scope read" in done.stdout


def test_a_revoked_key_ends_at_once(platform: Platform, script: Script) -> None:
    key = _key(platform)
    words = ("job", "--ak", key["ak"], "--sk", key["sk"], "list")
    assert script.run(*words).returncode == 0
    platform.ok("account", "revoke", "--key", key["ak"])
    done = script.run(*words)
    assert (done.returncode, "was revoked" in done.stderr) == (1, True)
    wrong = script.run("job", "--ak", "nobody", "--sk", "nothing", "list")
    assert (wrong.returncode, "access key is not known" in wrong.stderr) == (1, True)


def _data(answer: Answer) -> dict:
    assert (answer.status, answer.json["code"]) == (200, 0), answer.body
    return dict(answer.json["data"])


def test_a_client_of_the_old_package_is_answered_as_it_expects(platform: Platform) -> None:
    key = _key(platform, "--title", "old package", "--scope", "submit")
    old = Signer(platform.port, key["ak"], key["sk"])

    groups = old.legacy("GET", "/v1/users_auth").json["data"]
    clusters = [each["cluster"]["name"] for group in groups for each in group["phy"]]
    assert clusters == ["local"]
    for name, content in (
        ("train.py", "import os\nprint('trained', os.environ['MY_OWN'], os.listdir('.'))\n"),
        ("before_hook.sh", "echo hooked\n"),
    ):
        body = {"version": 1, "fileName": name, "type": "new", "content": content}
        _data(old.legacy("POST", "/v1/file", body))
    job = {
        "jobName": "old_job:1",
        "jobType": "paddle",
        "startCMD": "python3 train.py",
        "clusterName": "local",
        "jobAuth": "private",
        "jobVersion": "paddle-fluid-v0.13",
        "jobConf": 'MY_OWN = "yes"\nfs_ugi = "user,password"\n',
        "clusterConf": {
            "clusterName": "local",
            "k8sTrainersCount": 1,
            "k8sCpuCores": 1,
            "k8sMemory": "64Mi",
            "k8sPriority": "normal",
            "k8sWalltime": "01:00:00",
        },
    }
    job_id = _data(old.legacy("POST", "/v1/job", job))["jobId"]

    deadline = time.monotonic() + PATIENCE_S
    seen = []
    while not seen or seen[-1] not in ("success", "fail"):
        assert time.monotonic() < deadline, seen
        seen.append(_data(old.legacy("GET", f"/v1/jobStatus?jobId={job_id}"))["jobStatus"])
        time.sleep(0.05)
    assert seen[-1] == "success"
    assert set(seen) <= {"submit", "schedule", "queue", "running", "success"}
    with platform.client() as client:
        text = client.logs(job_id, "trainer-0")
    assert text.startswith("hooked\n")
    assert "trained yes" in text
    assert "user,password" not in text

    listed = _data(old.legacy("GET", "/v1/job?type=normal&page=1&maxKeys=10"))["jobs"]
    assert job_id in [each["jobId"] for each in listed]
    one = _data(old.legacy("GET", f"/v1/job?jobId={job_id}"))
    assert (one["jobName"], one["startCMD"]) == ("old_job:1", "python3 train.py")
    assert "password" not in one["jobConf"]
    _data(old.legacy("PUT", "/v1/job", {"jobIds": [job_id], "opType": "Rerun"}))
    _data(old.legacy("PUT", "/v1/job", {"jobIds": [job_id], "opType": "Kill"}))
    _data(old.legacy("DELETE", "/v1/job", {"jobIds": [job_id]}))
    assert old.legacy("GET", f"/v1/jobStatus?jobId={job_id}").json["code"] != 0


def test_files_are_moved_with_a_key_too(platform: Platform, tmp_path: Path) -> None:
    key = _key(platform, "--scope", "submit")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "small").write_bytes(b"s" * 1000)
    (folder / "large").write_bytes(os.urandom(9 << 20))
    endpoint = f"http://127.0.0.1:{platform.port}"
    with Client(endpoint, ak=key["ak"], sk=key["sk"]) as client:
        home = f"/pfs/local/home/{client.whoami()['name']}/by-key"
        client.files.copy([f"{folder}/"], home, recursive=True)
        client.files.copy([f"{home}/"], str(tmp_path / "back"), recursive=True)
    for name in ("small", "large"):
        assert (tmp_path / "back" / name).read_bytes() == (folder / name).read_bytes()
