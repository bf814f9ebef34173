"""The README's drawing of the parts: three columns of boxes, and what goes between them."""

from __future__ import annotations

from dataclasses import dataclass

from pictures import svg

COLUMN_PX = 246
PAD_PX = 14
GAP_PX = 46
BOX_PX = 74
HEIGHT_PX = 468
ROWS = (6, 132, 252, 388)  # the top of each row of boxes
COLUMNS = tuple(number * (COLUMN_PX + GAP_PX) for number in range(3))
GROUP_TOP, GROUP_BOTTOM = 96, 342


@dataclass(frozen=True)
class Box:
    column: int
    row: int
    title: str
    lines: tuple[str, str]
    spans: int = 1
    is_core: bool = False

    @property
    def left(self) -> float:
        return COLUMNS[self.column] + PAD_PX

    @property
    def right(self) -> float:
        return COLUMNS[self.column + self.spans - 1] + COLUMN_PX - PAD_PX

    @property
    def top(self) -> float:
        return ROWS[self.row]

    @property
    def bottom(self) -> float:
        return ROWS[self.row] + BOX_PX

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


CLIENTS = Box(
    0,
    0,
    "paddlecloud and the Python SDK",
    (
        "the command line and your programs make the same calls,",
        "over HTTP, from Linux, macOS and Windows",
    ),
    2,
)
KUBECTL = Box(2, 0, "kubectl", ("PaddleJob and TrainingJob", "as YAML"))
FILES = Box(0, 1, "File server", ("/pfs: resumable, checked,", "durable when acknowledged"))
SERVER = Box(1, 1, "API server", ("accounts, groups, jobs, events", "SQLite or PostgreSQL"))
KUBE = Box(2, 1, "Kubernetes API server", ("PaddleJob, TrainingJob,", "pods, quota"))
LOCAL = Box(0, 2, "Local engine", ("starts, watches and restarts", "the processes of a job"))
PLANNER = Box(
    1, 2, "Planner", ("who starts, who waits, and why:", "one pure function for both"), is_core=True
)
OPERATOR = Box(2, 2, "Operator", ("turns job objects into pods,", "one leader by lease"))
PROCESSES = Box(0, 3, "Processes", ("bubblewrap sandbox, cgroup,", "one address per replica"))
JOB = Box(1, 3, "Your program", ("ranks, peers and paths in variables;", "outputs are kept"))
PODS = Box(2, 3, "Pods", ("any image; nothing of ours", "has to be in it"))
BOXES = (CLIENTS, KUBECTL, FILES, SERVER, KUBE, LOCAL, PLANNER, OPERATOR, PROCESSES, JOB, PODS)


def draw(palette: svg.Palette) -> str:
    left, right = COLUMNS[0] + 0.5, COLUMNS[2]
    height = GROUP_BOTTOM - GROUP_TOP
    parts = [
        _marker(),
        svg.rect(left, GROUP_TOP, 2 * COLUMN_PX + GAP_PX - 1, height, "group", round_px=8),
        svg.rect(right, GROUP_TOP, COLUMN_PX - 0.5, height, "group", round_px=8),
        svg.text(COLUMNS[0] + PAD_PX, GROUP_TOP + 21, "One machine", "group-title"),
        svg.text(right + PAD_PX, GROUP_TOP + 21, "A cluster", "group-title"),
    ]
    for box in BOXES:
        parts += _box(box)
    parts += [
        _down(FILES, CLIENTS, "files"),
        _down(SERVER, CLIENTS, "jobs"),
        _down(KUBE, KUBECTL, "objects"),
        _across(SERVER, KUBE, "jobs"),
        _across(PLANNER, LOCAL, ""),
        _across(PLANNER, OPERATOR, ""),
        _elbow(SERVER, LOCAL),
        _down(OPERATOR, KUBE, "", both=True),
        _down(PROCESSES, LOCAL, ""),
        _down(PODS, OPERATOR, ""),
        _line(PROCESSES.right, PROCESSES.middle, JOB.left, JOB.middle, ends=""),
        _line(PODS.left, PODS.middle, JOB.right, JOB.middle, ends=""),
        _files_of_jobs(),
    ]
    title = (
        "Command line and SDK call the API server and the file server over HTTP; the API server "
        "hands jobs to the local engine, which starts processes, or to a Kubernetes API server, "
        "where the operator starts pods; engine and operator use the same planner."
    )
    return svg.document(svg.WIDTH, HEIGHT_PX, title, _css(palette), parts)


def _box(box: Box) -> list[str]:
    middle = (box.left + box.right) / 2
    kind = "core" if box.is_core else "box"
    return [
        svg.rect(box.left, box.top, box.right - box.left, BOX_PX, kind, round_px=6),
        svg.text(middle, box.top + 24, box.title, "title", anchor="middle"),
        *(
            svg.text(middle, box.top + 44 + 16 * number, line, "note", anchor="middle")
            for number, line in enumerate(box.lines)
        ),
    ]


def _marker() -> str:
    return (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" '
        'markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
        '<path d="M0 0 8 4 0 8z" class="tip"/></marker></defs>'
    )


def _path(points: str, ends: str) -> str:
    marks = "".join(f' marker-{end}="url(#tip)"' for end in ends.split())
    return f'<path d="{points}" class="arrow"{marks}/>'


def _line(x1: float, y1: float, x2: float, y2: float, *, ends: str = "end") -> str:
    return _path(f"M{x1:g} {y1:g}L{x2:g} {y2:g}", ends)


def _down(to: Box, start: Box, label: str, *, both: bool = False) -> str:
    x = (to.left + to.right) / 2
    line = _line(x, start.bottom, x, to.top, ends="start end" if both else "end")
    words = svg.text(x + 8, start.bottom + 12, label, "label") if label else ""
    return line + words


def _across(start: Box, to: Box, label: str) -> str:
    first, last = (start.right, to.left) if to.column > start.column else (start.left, to.right)
    line = _line(first, start.middle, last, to.middle, ends="start end" if not label else "end")
    words = svg.text((first + last) / 2, start.middle - 6, label, "label", anchor="middle")
    return line + (words if label else "")


def _elbow(start: Box, to: Box) -> str:
    """From below the server to above the local engine."""
    x1, x2, y = start.left + 40, (to.left + to.right) / 2, (start.bottom + to.top) / 2
    return _path(f"M{x1:g} {start.bottom:g}V{y:g}H{x2:g}V{to.top:g}", "end")


def _files_of_jobs() -> str:
    """The file server beside the processes that use its files, past the engine."""
    x = COLUMNS[0] + 7
    return _path(
        f"M{FILES.left:g} {FILES.middle:g}H{x:g}V{PROCESSES.middle:g}H{PROCESSES.left:g}",
        "start end",
    )


def _css(palette: svg.Palette) -> str:
    return (
        f"text{{font:11.5px {svg.SANS};fill:{palette.text}}}"
        ".title{font-size:13.5px;font-weight:600}"
        f".note{{fill:{palette.faint}}}.label{{font-size:11px;fill:{palette.faint}}}"
        f".group-title{{font-size:12px;font-weight:600;fill:{palette.faint}}}"
        f".group{{fill:{palette.ground};stroke:{palette.line};stroke-dasharray:4 3}}"
        f".box{{fill:{palette.page};stroke:{palette.line}}}"
        f".core{{fill:{palette.page};stroke:{palette.ours};stroke-width:1.5}}"
        f".arrow{{fill:none;stroke:{palette.faint}}}.tip{{fill:{palette.faint}}}"
    )
