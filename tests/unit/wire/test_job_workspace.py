"""The start script of a generation B job, run for real in a folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given

from paddlecloud.wire.job_workspace import FOLDER, SCRIPT, SCRIPT_NAME, command_of, entry
from tests.patience import PATIENCE_S
from tests.unit.strategies import texts

FOLDERS = ("log", "output", "test_data", "thirdparty", "train_data")

pytestmark = pytest.mark.needs("linux")  # for its shell


class Replica:
    """A package folder and the variables of one replica."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "package"
        self.tmp = folder / "tmp"
        self.out = folder / "out"
        for path in (self.package / FOLDER, self.tmp, self.out):
            path.mkdir(parents=True)
        (self.package / SCRIPT_NAME).write_text(SCRIPT)
        self.env = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.tmp),
            "OUTPUT_PATH": str(self.out),
            "PADDLECLOUD_PFS_HOME": str(folder),
        }

    def file(self, name: str, text: str) -> None:
        path = self.package / FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def start(self, command: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", entry(command)],
            cwd=self.package,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str, **env: str) -> tuple[int, str]:
        process = self.start(command, **env)
        out, _ = process.communicate(timeout=PATIENCE_S)
        return process.returncode, out

    @property
    def log(self) -> str:
        return (self.tmp / "paddlejob/workspace/log/train.log").read_text()


@pytest.fixture
def replica(tmp_path: Path) -> Replica:
    return Replica(tmp_path)


def test_runs_the_command_in_a_copy_of_its_own(replica: Replica) -> None:
    replica.file("a.txt", "hello\n")
    code, out = replica.run("pwd; cat a.txt; echo new > b.txt; ls")
    assert code == 0
    assert out.splitlines()[1:] == ["hello", *sorted(["a.txt", "b.txt", *FOLDERS])]
    assert out.splitlines()[0].endswith("/paddlejob/workspace/env_run")
    assert not (replica.package / FOLDER / "b.txt").exists()


def test_keeps_the_output_of_the_command_in_its_log(replica: Replica) -> None:
    _, out = replica.run("echo one; echo two >&2")
    assert replica.log == out == "one\ntwo\n"


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("true", 0), ("kill -9 $$", 137)])
def test_ends_as_the_command_ends(replica: Replica, command: str, code: int) -> None:
    assert replica.run(command)[0] == code


def test_hooks_run_around_the_command(replica: Replica) -> None:
    replica.file("before_hook.sh", "echo before > order\n")
    replica.file("end_hook.sh", "echo after >> order; cp order output/\n")
    assert replica.run("echo during >> order; exit 3")[0] == 3
    assert (replica.out / "rank-00000/order").read_text() == "before\nduring\nafter\n"


def test_a_failing_before_hook_stops_the_job(replica: Replica) -> None:
    replica.file("before_hook.sh", "exit 9\n")
    code, out = replica.run("echo started")
    assert (code, out) == (1, "paddlejob: before_hook.sh failed with exit code 9\n")


def test_a_failing_end_hook_is_a_failure(replica: Replica) -> None:
    replica.file("end_hook.sh", "exit 9\n")
    assert replica.run("true")[0] == 9
    assert Replica(replica.package.parent / "again").run("exit 4")[0] == 4


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_training_data_is_shared_out(replica: Replica, tmp_path: Path, rank: int) -> None:
    data = tmp_path / "my data"
    data.mkdir()
    for number in range(7):
        (data / f"part-{number}").write_text(str(number))
    env = {"PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": "3"}
    expected = [f"part-{number}" for number in range(7) if number % 3 == rank]
    for paths in (str(data), f"{data}/part-*", f"{data}/part-[0-3],{data}/part-[4-6]"):
        shutil.rmtree(replica.tmp)
        replica.tmp.mkdir()
        code, out = replica.run("ls train_data", train_data_path=paths, **env)
        assert (code, out.split()) == (0, expected)


def test_servers_get_no_training_data(replica: Replica, tmp_path: Path) -> None:
    code, out = replica.run("ls train_data", train_data_path=str(tmp_path), TRAINING_ROLE="PSERVER")
    assert (code, out) == (0, "")
    assert (replica.out / "pserver-00000").is_dir()


def test_says_which_input_is_missing(replica: Replica, tmp_path: Path) -> None:
    code, out = replica.run("true", train_data_path=f"{tmp_path}/none/*")
    assert code == 1
    assert f"train_data_path: there is nothing at {tmp_path}/none/*" in out


@pytest.mark.parametrize("where", ["hdfs://x/y", "/user/paddle/x", "/pfsx/y", ""])
def test_paths_elsewhere_are_left_alone(replica: Replica, where: str) -> None:
    keys = ("train_data_path", "test_data_path", "thirdparty_path", "init_model_path")
    env = {key: where for key in (*keys, "output_path")}
    code, out = replica.run("ls; ls train_data; echo $train_data_path $output_path", **env)
    assert (code, out.split()) == (0, [*sorted(FOLDERS), *where.split() * 2])
    assert (replica.out / "rank-00000").is_dir()


def test_other_inputs_are_linked(replica: Replica, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/a.whl").write_text("wheel")
    code, out = replica.run(
        "cat thirdparty/a.whl test_data/a.whl init_model/a.whl",
        thirdparty_path=str(tmp_path / "lib"),
        test_data_path=str(tmp_path / "lib/a.whl"),
        init_model_path=str(tmp_path / "lib"),
    )
    assert (code, out) == (0, "wheelwheelwheel")


def test_output_is_written_in_place_by_rank(replica: Replica, tmp_path: Path) -> None:
    replica.file("output/readme", "sent along")
    target = tmp_path / "models"
    code, _ = replica.run("echo m > output/m", output_path=str(target), PADDLE_TRAINER_ID="12")
    assert code == 0
    assert sorted(os.listdir(target / "rank-00012")) == ["m", "readme"]


@pytest.mark.parametrize(
    ("force", "attempt", "code", "left"),
    [
        ("", "1", 1, ["old"]),
        ("False", "1", 1, ["old"]),
        ("True", "1", 0, ["new"]),
        ("", "2", 0, ["new", "old"]),  # its own output, before it was restarted
    ],
)
def test_a_used_output_path_is_emptied_only_if_told(
    replica: Replica, tmp_path: Path, force: str, attempt: str, code: int, left: list[str]
) -> None:
    folder = tmp_path / "models/rank-00000"
    folder.mkdir(parents=True)
    (folder / "old").write_text("")
    env = {"force_reuse_output_path": force, "PADDLECLOUD_ATTEMPT": attempt}
    assert replica.run("touch output/new", output_path=str(folder.parent), **env)[0] == code
    assert sorted(os.listdir(folder)) == left


@pytest.mark.parametrize("kind", ["folder", "tar", "gztar", "bztar", "xztar"])
def test_code_may_be_elsewhere(replica: Replica, tmp_path: Path, kind: str) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "main.py").write_text("print('from afar')")
    uri = str(code)
    if kind != "folder":
        uri = shutil.make_archive(str(tmp_path / "packed"), kind, code)
    assert replica.run("cat main.py", PADDLECLOUD_CODE_URI=uri) == (0, "print('from afar')")


def test_code_in_a_hostile_archive_is_refused(replica: Replica, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    subprocess.run(["tar", "-czf", tmp_path / "code.tgz", "-C", tmp_path, "link"], check=True)
    code, out = replica.run("echo started", PADDLECLOUD_CODE_URI=str(tmp_path / "code.tgz"))
    assert code == 1
    assert out == (
        f"paddlejob: cannot unpack {tmp_path}/code.tgz: 'link' is a link, a device or another "
        "thing that is no file\n"
    )


@pytest.mark.parametrize(
    ("launcher", "text"), [("mpi", "$OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE"),
                           ("slurm", "$SLURM_PROCID/$SLURM_NTASKS")]
)  # fmt: skip
def test_programs_of_other_launchers_find_their_rank(
    replica: Replica, launcher: str, text: str
) -> None:
    env = {"PADDLECLOUD_LAUNCHER": launcher, "PADDLE_TRAINER_ID": "3", "PADDLE_TRAINERS_NUM": "5"}
    assert replica.run(f"echo {text}", **env) == (0, "3/5\n")


def test_modules_beside_the_program_are_found(replica: Replica) -> None:
    _, out = replica.run("echo $PYTHONPATH", PYTHONPATH="/pkg")
    assert out.endswith("/paddlejob/workspace/env_run:/pkg\n")


def test_a_stop_gives_the_program_its_time(replica: Replica) -> None:
    replica.file("end_hook.sh", "echo hook > output/hook\n")
    process = replica.start(
        "trap 'echo saving; exit 5' TERM; echo ready; while :; do sleep 0.05; done"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGTERM)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "saving\n" in out) == (5, True)
    assert (replica.out / "rank-00000/hook").exists()


@pytest.mark.slow
def test_a_process_left_behind_does_not_hold_it(replica: Replica) -> None:
    process = replica.start("sleep 60 & echo $!; exit 3")
    assert process.stdout is not None
    left = int(process.stdout.readline())
    try:
        assert process.wait(timeout=PATIENCE_S) == 3
    finally:
        os.kill(left, signal.SIGKILL)
        process.stdout.close()


@given(texts)
def test_the_command_can_be_read_back(command: str) -> None:
    assert command_of(entry(command)) == command


@pytest.mark.parametrize(
    "text", ["python train.py", "exec sh start.sh ", "exec sh start.sh a b", "exec sh start.sh 'x"]
)
def test_any_other_entry_is_its_own_command(text: str) -> None:
    assert command_of(text) == text
