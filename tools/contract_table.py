"""Writes the table of variables in docs/guides/jobs.md from `paddlecloud.core.contract`.

    python tools/contract_table.py

The table stands between two marker lines; what is around them is left alone. A test fails when
the guide's table is not the one this program would write.
"""

from __future__ import annotations

from pathlib import Path

from paddlecloud.core import contract

GUIDE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "jobs.md"
BEGIN, END = "<!-- variables: tools/contract_table.py -->", "<!-- end of variables -->"
MAX_EXAMPLE = 44

GENERATIONS = {
    "A": "The first PaddleCloud (2017)",
    "B": "The job client, and Paddle to this day",
    "C": "The public trial",
    "O": "The Kubernetes operator",
    "P": "Paddle itself, when a program runs without its launcher",
    "T": "torch",
    "J": "JAX",
}


def example() -> dict[str, str]:
    """What trainer 1 of a job with two trainers and one server sees."""
    at = [contract.Peer(f"127.0.0.{n + 2}", 20040 + 20 * n) for n in range(3)]
    folder = "/pfs/local/home/alice/jobs/wide-deep"
    facts = contract.JobFacts(
        job_id="job-4f1c09d2a7b35e60",
        name="wide-deep",
        mode=contract.PS,
        datacenter="local",
        user="alice",
        namespace="alice",
        pservers=at[:1],
        trainers=at[1:],
        entry="python train.py",
        package=folder,
        output=f"{folder}/output",
    )
    return contract.environment(facts, contract.ReplicaFacts(contract.TRAINER, 1))


def _cell(value: str | None) -> str:
    if value is None:
        return ""
    return f"`{value}`" if len(value) <= MAX_EXAMPLE else f"`{value[: MAX_EXAMPLE - 1]}…`"


def table() -> str:
    values = example()
    lines: list[str] = []
    for letter, title in GENERATIONS.items():
        rows = [row for row in contract.VARIABLES if row.since == letter]
        lines += [f"**{title}**", "", "| variable | meaning | example |", "|---|---|---|"]
        for row in rows:
            lines.append(f"| `{row.name}` | {row.meaning} | {_cell(values.get(row.name))} |")
        lines.append("")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The guide with its table renewed."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{GUIDE} has no line {BEGIN!r} or {END!r}")
    return f"{before}{BEGIN}\n\n{table()}\n{END}{after}"


if __name__ == "__main__":
    GUIDE.write_text(with_table(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")
