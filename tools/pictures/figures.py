"""The README's bars, drawn from what benchmarks stored in bench/results.

Every panel says which way is better, every bar starts at zero and carries its figure, and the last
lines name machine, date and load. A figure that no result holds is an error, never an empty bar.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pictures import svg

LOWER, HIGHER = "lower is better", "higher is better"
PANEL_PX = 405
GAP_PX = svg.WIDTH - 2 * PANEL_PX
LABEL_PX = 168  # room for the names of the bars
VALUE_PX = 72  # room for the longest bar's figure
ROW_PX = 23
BAR_PX = 13
HEAD_PX = 50
PAD_PX = 14
FOOT_LINE_PX = 16


@dataclass(frozen=True)
class Bar:
    label: str
    figure: str
    is_ours: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    bench: str  # whose result it is drawn from
    unit: str
    better: str
    bars: tuple[Bar, ...]
    note: str


PANELS = (
    Panel(
        "Submit to running",
        "ray",
        "ms",
        LOWER,
        (
            Bar("PaddleCloud", "paddlecloud_submit_to_seen_running_p50_ms", True),
            Bar("Ray", "ray_submit_to_seen_running_p50_ms"),
        ),
        "SDK call until seen running; medians, taking turns",
    ),
    Panel(
        "Listing jobs on the command line",
        "ray",
        "ms",
        LOWER,
        (
            Bar("paddlecloud get jobs", "paddlecloud_get_jobs_p50_ms", True),
            Bar("kubectl get pods", "kubectl_get_pods_p50_ms"),
            Bar("ray job list", "ray_job_list_p50_ms"),
            Bar("ray list jobs", "ray_list_jobs_p50_ms"),
        ),
        "same number of rows; medians, taking turns",
    ),
    Panel(
        "Uploading a 2 GiB file",
        "pfs",
        "MB/s",
        HIGHER,
        (
            Bar("PaddleCloud, handed over", "large_put_paddlecloud_mb_per_s", True),
            Bar("PaddleCloud, bytes sent", "sent_put_paddlecloud_mb_per_s", True),
            Bar("curl to nginx", "large_put_curl_nginx_mb_per_s"),
            Bar("cp", "large_put_cp_mb_per_s"),
            Bar("scp", "large_put_scp_mb_per_s"),
            Bar("rsync daemon", "large_put_rsync_mb_per_s"),
        ),
        "on one machine; only PaddleCloud syncs to disk",
    ),
    Panel(
        "100 jobs of 4 pods to Running",
        "kube",
        "s",
        LOWER,
        (
            Bar("PaddleCloud", "jobs_say_running_s", True),
            Bar("raw pods, 8 threads", "raw_pods_running_s"),
            Bar("training-operator ¹", "training_operator_unlimited_jobs_say_running_s"),
            Bar("Volcano ¹", "volcano_unlimited_jobs_say_running_s"),
            Bar("Volcano", "volcano_jobs_say_running_s"),
            Bar("training-operator", "training_operator_jobs_say_running_s"),
        ),
        "¹ its API client's rate limit lifted",
    ),
)

# What the panels of a bench are called where its machine is named.
ABOUT = {"ray": "Submit and list", "pfs": "File", "kube": "Kubernetes"}


class MissingFigure(Exception):
    """A result that a panel is drawn from is not stored."""


def read(folder: Path) -> dict[str, dict[str, Any]]:
    """Every stored result, by the name of its bench."""
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(folder.glob("*.json"))
    }


def draw(results: dict[str, dict[str, Any]], palette: svg.Palette) -> str:
    parts: list[str] = []
    top = 0.0
    for left, right in zip(PANELS[::2], PANELS[1::2], strict=True):
        height = HEAD_PX + ROW_PX * max(len(left.bars), len(right.bars)) + PAD_PX
        for x, panel in ((0.0, left), (PANEL_PX + GAP_PX, right)):
            parts += _panel(panel, _values(panel, results), x, top, height)
        top += height + GAP_PX
    for line in _sources(results):
        top += FOOT_LINE_PX
        parts.append(svg.text(2, top - 8, line, "note"))
    return svg.document(svg.WIDTH, top, _title(results), _css(palette), parts)


def _values(panel: Panel, results: dict[str, dict[str, Any]]) -> list[float]:
    figures = results.get(panel.bench, {}).get("result", {}).get("figures", {})
    missing = [bar.figure for bar in panel.bars if bar.figure not in figures]
    if missing:
        raise MissingFigure(
            f"bench/results/{panel.bench}.json has no {', '.join(missing)}; measure it with: "
            f"PADDLECLOUD_BENCH_RESULTS=bench/results .venv/bin/python bench/{panel.bench}_bench.py"
        )
    return [float(figures[bar.figure]) for bar in panel.bars]


def shown(value: float) -> str:
    """With a tenth below 50, where it shows, and a comma for thousands."""
    return f"{value:.1f}" if value < 50 else f"{value:,.0f}"


def _panel(panel: Panel, values: list[float], x: float, y: float, height: float) -> list[str]:
    parts = [
        svg.rect(x + 0.5, y + 0.5, PANEL_PX - 1, height - 1, "panel", round_px=6),
        svg.text(x + PAD_PX, y + 22, panel.title, "title"),
        svg.text(x + PAD_PX, y + 39, panel.note, "note"),
        svg.text(
            x + PANEL_PX - PAD_PX, y + 22, f"{panel.unit}, {panel.better}", "note", anchor="end"
        ),
    ]
    zero = x + PAD_PX + LABEL_PX
    room = PANEL_PX - 2 * PAD_PX - LABEL_PX - VALUE_PX
    for number, (bar, value) in enumerate(zip(panel.bars, values, strict=True)):
        middle = y + HEAD_PX + ROW_PX * number + ROW_PX / 2
        kind = "ours" if bar.is_ours else "peer"
        length = max(1.0, room * value / max(values))
        parts += [
            svg.text(zero - 8, middle + 4, bar.label, f"{kind}-label", anchor="end"),
            svg.rect(zero, middle - BAR_PX / 2, length, BAR_PX, kind, round_px=1.5),
            svg.text(
                zero + length + 6, middle + 4, f"{shown(value)} {panel.unit}", f"{kind}-label"
            ),
        ]
    bottom = y + HEAD_PX + ROW_PX * len(values)
    parts.append(svg.rect(zero - 0.5, y + HEAD_PX, 1, bottom - y - HEAD_PX, "axis"))
    return parts


def _sources(results: dict[str, dict[str, Any]]) -> list[str]:
    """Where and when: a line per machine and day."""
    measured: dict[str, list[str]] = {}
    for bench, words in ABOUT.items():
        stored = results[bench]
        load = stored["result"].get("load_before")
        facts = [stored["date"], stored["machine"]]
        facts += [f"load average {load:g} at start"] if load is not None else []
        facts += [stored["conditions"]] if "conditions" in stored else []
        facts += ["one run"] if stored.get("runs") == 1 else []
        measured.setdefault(", ".join(facts), []).append(words)
    return [f"{' and '.join(words)}: {facts}." for facts, words in measured.items()]


def _title(results: dict[str, dict[str, Any]]) -> str:
    """All that is drawn, as a sentence per panel."""
    sentences = []
    for panel in PANELS:
        pairs = zip(panel.bars, _values(panel, results), strict=True)
        bars = ", ".join(f"{bar.label} {shown(value)}" for bar, value in pairs)
        sentences.append(f"{panel.title} ({panel.unit}, {panel.better}): {bars}.")
    return " ".join(sentences)


def _css(palette: svg.Palette) -> str:
    return (
        f"text{{font:12px {svg.SANS};fill:{palette.text}}}"
        ".title{font-size:14px;font-weight:600}"
        f".note{{font-size:11px;fill:{palette.faint}}}"
        ".ours-label{font-weight:600}"
        f".panel{{fill:{palette.ground};stroke:{palette.line}}}"
        f".ours{{fill:{palette.ours}}}.peer{{fill:{palette.peer}}}.axis{{fill:{palette.faint}}}"
    )
