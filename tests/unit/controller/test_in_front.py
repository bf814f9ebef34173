"""In front of which commands the runtime stands, and what is said where it does not."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest

from paddlecloud.controller import in_front
from paddlecloud.controller.in_front import Absence
from paddlecloud.forms import start_command
from paddlecloud.kube.kinds import TRAINING_JOB
from paddlecloud.kube.words import RUNTIME_ANNOTATION
from paddlecloud.runtime import delivery
from tests.patience import PATIENCE_S
from tests.unit.controller.pretended import Namespace, role

MAP = ("configmaps", "job.runtime")


def commanded(replicas: int, *command: str, **container: Any) -> dict[str, Any]:
    made = role(replicas)
    made["template"]["spec"]["containers"][0] |= {"command": list(command), **container}
    return made


def settled(wish: str = "", **spec: Any) -> Namespace:
    world = Namespace(**spec)
    if wish:
        world.body["metadata"]["annotations"] = {RUNTIME_ANNOTATION: wish}
    world.settle()
    return world


def condition(world: Namespace) -> tuple[str, str, str]:
    (row,) = [one for one in world.status["conditions"] if one["type"] == "Runtime"]
    return row["status"], row["reason"], row["message"]


def container(world: Namespace, pod: str = "job-worker-0") -> dict[str, Any]:
    found: dict[str, Any] = world.pods()[pod]["spec"]["containers"][0]
    return found


@pytest.mark.parametrize(
    "program", ["sh", "bash", "/bin/sh", "/usr/local/bin/bash", "python", "python3", "/a/python3.9"]
)
def test_stands_in_front_of_shells_and_python(program):
    world = settled(worker=commanded(2, program, "x", args=["y"]))
    found = container(world)
    assert found["command"][0] == program
    assert found["command"][-4:] == [in_front.FILE, "/dev/termination-log", program, "x"]
    assert found["args"] == ["y"]
    mounts = {one["name"]: one["mountPath"] for one in found["volumeMounts"]}
    assert mounts["paddlecloud-runtime"] == "/var/run/paddlecloud/runtime"
    assert world.stored[MAP]["data"] == {"paddlecloud_runtime.py": delivery.source()}
    assert condition(world)[:2] == ("True", "InFront")
    assert "if the image has Python 3.6" in condition(world)[2]


@pytest.mark.parametrize(
    ("wish", "command", "more", "reason", "words"),
    [
        ("", [], {}, "NoCommand", "the container of worker has no command"),
        ("", [], {"args": ["train.py"]}, "NoCommand", "write its command"),
        ("true", [], {}, "NoCommand", "has no command"),
        ("", ["/train"], {}, "UnknownProgram", f'{RUNTIME_ANNOTATION}: "true"'),
        ("", ["$(SHELL)", "-c", "x"], {}, "UnknownProgram", "neither a shell nor Python"),
        ("", ["python2", "x"], {}, "UnknownProgram", "neither a shell nor Python"),
        ("", ["bash"], {"tty": True}, "Terminal", "tty"),
        ("false", ["sh", "-c", "x"], {}, "SwitchedOff", "is left alone"),
    ],
)
def test_leaves_other_commands_alone_and_says_what_is_missed(wish, command, more, reason, words):
    world = settled(wish, worker=commanded(1, *command, **more))
    assert container(world)["command"] == command
    assert MAP not in world.stored
    assert all(one["name"] != in_front.VOLUME for one in container(world)["volumeMounts"])
    is_so, why, message = condition(world)
    assert (is_so, why) == ("False", reason)
    assert words in message
    assert "it has its environment and its start order" in message


def test_stands_in_front_of_anything_when_asked():
    world = settled("true", worker=commanded(1, "/train", "-x"))
    assert container(world)["command"][:2] == ["sh", "-c"]
    assert container(world)["command"][-2:] == ["/train", "-x"]
    assert condition(world)[0] == "True"


def test_says_of_every_role_what_it_lacks():
    world = settled(worker=commanded(1, "/train"), ps=role(1))
    assert condition(world)[1] == "NoCommand"
    assert "the container of ps has no command" in condition(world)[2]
    assert "the container of worker runs a program" in condition(world)[2]


def test_serves_the_roles_that_have_a_command():
    world = settled(worker=commanded(1, "sh", "-c", "x"), ps=role(1))
    assert MAP in world.stored
    assert len(container(world)["command"]) > 3
    assert "command" not in container(world, "job-ps-0")


def test_stands_in_front_of_the_command_of_a_training_job():
    trainer = {"entrypoint": "python train.py", "workspace": "/w", "min-instance": 1}
    world = settled(kind=TRAINING_JOB, image="i", trainer=trainer)
    command = container(world, "job-trainer-0")["command"]
    assert command[-6:] == start_command.command("/w", "python train.py")
    assert command[0] == "sh"
    assert ("configmaps", f"job{TRAINING_JOB.suffix}.runtime") in world.stored


def test_warns_of_a_word_that_means_nothing():
    world = settled("on", worker=commanded(1, "sh", "-c", "x"))
    assert {message for reason, message in world.events if reason == "OddSpec"} == {
        f'metadata.annotations.{RUNTIME_ANNOTATION}: is ignored; the words are "true" and "false"'
    }
    assert condition(world)[0] == "True"


def test_is_made_before_the_pods_and_made_again_when_it_is_lost():
    world = Namespace(worker=commanded(2, "sh", "-c", "x"))
    made = [action.body["metadata"]["name"] for action in world.look().actions]
    assert made == ["job.runtime", "job-worker-0", "job-worker-1"]
    world.settle()
    del world.stored[MAP]
    world.settle()
    assert MAP in world.stored


def test_leaves_words_where_the_container_wants_them():
    world = settled(worker=commanded(1, "sh", terminationMessagePath="/tmp/$(X)"))
    assert "/tmp/$$(X)" in container(world)["command"]


def test_the_operator_remembers_only_that_the_file_is_there():
    world = settled(worker=commanded(1, "sh", "-c", "x"))
    kept = in_front.without_text(world.stored[MAP])
    assert kept["data"] == {"paddlecloud_runtime.py": ""}
    assert kept["metadata"] == world.stored[MAP]["metadata"]
    assert in_front.without_text({"data": {"A": "b"}}) == {"data": {"A": "b"}}


def test_every_reason_has_words():
    assert all(one.words for one in Absence)


# --- as a container runtime would start it -------------------------------------------------------


def _as_started(command: list[str], file: str, message: str) -> list[str]:
    """With the variables resolved, and the places of this machine."""
    places = {in_front.FILE: file, in_front.DEFAULT_MESSAGE_FILE: message}
    words = [re.sub(r"\$\$", "$", word) for word in command]
    return [places.get(word, word) for word in words]


@pytest.fixture
def places(tmp_path):
    file, message = tmp_path / "r" / delivery.FILE_NAME, tmp_path / "message"
    file.parent.mkdir()
    file.write_text(delivery.source())
    message.write_text("")
    return file, message


def run(command: list[str], places: Any, **env: str) -> subprocess.CompletedProcess[str]:
    found = container(settled(worker=commanded(1, *command)))["command"]
    return subprocess.run(
        _as_started(found, *map(str, places)),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        cwd=places[1].parent,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize("command", [["sh", "-c"], [sys.executable, "-c"]], ids=["sh", "python"])
def test_the_program_runs_behind_the_runtime(command, places):
    if command[0] == "sh":
        command = [*command, "python3 -c 'import nonesuch'"]
    else:
        command = [*command, "import nonesuch"]
    # Neither the folder nor PYTHONPATH may replace what the runtime itself imports.
    (places[1].parent / "select.py").write_text("raise SystemExit(99)")
    done = run(command, places, PYTHONPATH=str(places[1].parent))
    assert done.returncode == 1
    assert places[1].read_text() == "ModuleNotFoundError: No module named 'nonesuch' (<string>:1)"


@pytest.mark.parametrize("command", [["sh", "-c"], [sys.executable, "-c"]], ids=["sh", "python"])
def test_the_program_runs_although_the_file_is_not_there(command, places):
    places[0].unlink()
    text = "exit 7" if command[0] == "sh" else "raise SystemExit(7)"
    assert run([*command, text], places).returncode == 7
    assert places[1].read_text() == ""


@pytest.mark.parametrize("python", ["", "#!/bin/sh\nexit 1\n", "#!/bin/sh\nexec nonesuch\n"])
def test_the_program_runs_where_there_is_no_python_of_use(python, places, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    if python:
        for name in ("python", "python3"):
            (programs / name).write_text(python)
            (programs / name).chmod(0o755)
    done = run(
        ["/bin/sh", "-c", 'echo "$0 $1"; exit 7', "a  b", "$HOME"], places, PATH=str(programs)
    )
    assert (done.returncode, done.stdout) == (7, "a  b $HOME\n")
