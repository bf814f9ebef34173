"""The README's pictures are there, small, and what their sources give."""

from __future__ import annotations

import json
import re
import shlex
import sys
from importlib import import_module
from pathlib import Path

import pytest

from paddlecloud.cli.verbs import VERBS

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from pictures import __main__ as pictures  # noqa: E402
from pictures import figures, session, svg, terminal  # noqa: E402
from pictures.recording import COMMAND, OUTPUT, Recording  # noqa: E402
from pictures.screen import CannotDraw, Screen, Style, runs  # noqa: E402

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_BYTES = 150_000


# --- the files ----------------------------------------------------------------------------------


def test_every_picture_is_what_its_recording_and_its_results_give():
    drawn = pictures.drawn()
    stored = {path.name: path.read_text() for path in pictures.PICTURES.glob("*.svg")}
    assert sorted(stored) == sorted(drawn)
    stale = [name for name, text in drawn.items() if stored[name] != text]
    assert stale == [], "run: make pictures ARGS=--render-only"


def test_no_picture_is_large():
    sizes = {path.name: path.stat().st_size for path in pictures.PICTURES.glob("*.svg")}
    assert [name for name, size in sizes.items() if size > MOST_BYTES] == []


def test_the_readme_shows_every_picture_for_light_and_for_dark_pages():
    shown = re.findall(r'(?:srcset|src)="docs/pictures/([\w.-]+)"', README)
    assert sorted(shown) == sorted(path.name for path in pictures.PICTURES.glob("*.svg"))
    dark = re.findall(r'media="\(prefers-color-scheme: dark\)" srcset="([^"]+)"', README)
    assert dark
    assert all(name.endswith("-dark.svg") for name in dark)


def test_every_result_says_where_and_when_it_was_measured():
    for name, stored in figures.read(pictures.RESULTS).items():
        assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", stored["date"]), name
        assert "cores" in stored["machine"], name
        assert (ROOT / shlex.split(stored["command"])[0]).exists(), name


# --- the commands that are shown ----------------------------------------------------------------


def shown_commands() -> list[str]:
    typed = re.findall(r"^(?:\.venv/bin/)?(paddlecloud [^\n#]+)$", README, re.MULTILINE)
    recorded = Recording.read(pictures.RECORDING).commands
    assert typed
    assert recorded
    return typed + [command.replace("\\\n", " ") for command in recorded]


@pytest.mark.parametrize("command", shown_commands())
def test_a_command_that_is_shown_exists_with_its_flags(command: str):
    program, verb, *words = shlex.split(command)
    assert program == "paddlecloud"
    assert verb in VERBS
    module = import_module(f"paddlecloud.cli.{VERBS[verb][0]}")
    known = {name.lstrip("-") for flag in getattr(module, "FLAGS", ()) for name in flag.names}
    asked = {word.partition("=")[0].lstrip("-") for word in words if word.startswith("-")}
    assert asked - known == set()


def test_the_recording_is_of_the_session_as_it_is_now():
    wanted = [step.command for step in session.SESSION]
    assert Recording.read(pictures.RECORDING).commands == wanted, "run: make pictures"


def test_submit_logs_and_explain_are_shown():
    verbs = {command.split()[1] for command in Recording.read(pictures.RECORDING).commands}
    assert {"submit", "logs", "explain"} <= verbs


def test_the_recording_names_no_folder_of_the_machine_it_was_made_on():
    text = pictures.RECORDING.read_text()
    assert re.findall(r"/(?:tmp|root|home/(?!alice/))\S*", text.replace("/pfs/local", "")) == []


# --- drawing ------------------------------------------------------------------------------------


def screen_after(*texts: str) -> Screen:
    screen = Screen(20)
    for at_s, text in enumerate(texts):
        screen.write(text, at_s)
    return screen


def test_a_line_that_is_written_again_was_there_from_the_first_time():
    screen = screen_after("Sending ... ", "\r\x1b[KSending ... Done\r\n")
    assert [(run.text, run.at_s) for run in runs(screen.rows[0])] == [
        ("Sending ...", 0),
        ("Done", 1),
    ]


def test_what_was_erased_is_not_shown():
    assert [run.text for run in runs(screen_after("10%  slow", "\r\x1b[K20%").rows[0])] == ["20%"]


def test_colours_and_weights_come_and_go():
    found = runs(screen_after("\x1b[1;32mok\x1b[0m no \x1b[2mdim").rows[0])
    styles = [(run.text, run.style) for run in found]
    assert styles == [("ok", Style("green", True)), ("no", Style()), ("dim", Style(is_faint=True))]


def test_a_long_line_goes_on_in_the_next_row():
    assert [len(row) for row in screen_after("x" * 45).rows] == [20, 20, 5]


@pytest.mark.parametrize("order", ["\x1b[2J", "\x1b[48;5;1m", "\x07"])
def test_what_it_cannot_draw_is_an_error(order: str):
    with pytest.raises(CannotDraw):
        screen_after(order)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path):
    taken = Recording(80, 24, 1_700_000_000)
    taken.add(0.5, COMMAND, "echo ä")
    taken.add(9.5, OUTPUT, "ä\r\n")
    taken.write(tmp_path / "a.cast")
    assert Recording.read(tmp_path / "a.cast") == taken
    assert [event.at_s for event in taken.without_waits(1.0).events] == [0.5, 1.5]


def test_who_wants_no_motion_sees_the_whole_terminal():
    text = terminal.draw(Recording.read(pictures.RECORDING), svg.LIGHT)
    assert "prefers-reduced-motion:reduce" in text
    # Without animations everything is as its own attributes say: nothing hides or covers.
    assert ".cover{" in text
    assert "transform:scaleX(0)" in text
    assert "opacity:0}" not in text.replace("@keyframes show{from{opacity:0}}", "")


def test_a_bar_is_as_long_as_its_figure_says():
    results = figures.read(pictures.RESULTS)
    text = figures.draw(results, svg.LIGHT)
    widths = [
        float(width)
        for width in re.findall(r'<rect [^>]*width="([\d.]+)"[^>]*class="(?:ours|peer)"', text)
    ]
    for panel in figures.PANELS:
        values = [results[panel.bench]["result"]["figures"][bar.figure] for bar in panel.bars]
        bars, widths = widths[: len(values)], widths[len(values) :]
        per_unit = max(bars) / max(values)
        assert bars == pytest.approx([max(1, value * per_unit) for value in values], abs=0.02)
    assert widths == []


def test_a_figure_that_nobody_measured_is_an_error():
    results = json.loads(json.dumps(figures.read(pictures.RESULTS)))
    del results["kube"]["result"]["figures"]["volcano_jobs_say_running_s"]
    with pytest.raises(figures.MissingFigure, match=r"volcano_jobs_say_running_s.*kube_bench"):
        figures.draw(results, svg.LIGHT)
