"""`submit --dry-run`: the spec a command line means and what it comes to; nothing is submitted.

`client` needs no server; `server` adds whether it would start now. Called by `submit`.
"""

from __future__ import annotations

from dataclasses import replace

from paddlecloud.cli.output import print_object
from paddlecloud.cli.session import Session
from paddlecloud.cli.sizes import roles
from paddlecloud.core import jobspec
from paddlecloud.core.jobspec import JobSpec, Role
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.forms import config_ini, submit_flags, understood
from paddlecloud.forms.effective import effective
from paddlecloud.forms.submit_flags import Submission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def show(session: Session, submission: Submission) -> int:
    spec = submission.spec
    result: dict[str, Any] = {}
    if session.parsed.text("dry-run") == "server":
        answer = session.client.dry_run(spec)
        spec = jobspec.from_json(answer["spec"])
        result = {"starts": answer["starts"], "reason": answer["reason"]}
    spec = replace(spec, env=config_ini.shown(spec.env))
    rows = [each._asdict() for each in understood.of_submit(submission)]
    block = {"spec": jobspec.to_json(spec), "effective": effective(spec), "understood": rows}
    result = block | result
    if "o" in session.parsed:
        form = session.parsed.text("o")
        if form == "name":
            session.say(spec.name)
        else:
            print_object(session, result, form)
        return 0
    session.write(_for_people(spec, submission.package, result))
    return 0


def _for_people(spec: JobSpec, package: str, result: dict[str, Any]) -> str:
    servers = spec.role(Role.PSERVER)
    total = spec.resources_at(spec.trainers.replicas)
    counts = {Role.TRAINER.value: spec.trainers.replicas}
    if servers:
        counts[Role.PSERVER.value] = servers.replicas
    needs = f"{format_cpu(total.cpu_milli)} cpu, {format_memory(total.memory_bytes)}"
    lines = [
        f"{spec.name}: nothing was submitted (dry run)",
        f"  mode       {spec.mode.value}: {roles(counts)}",
        f"  needs      {needs}, {total.gpu} gpu in all",
        f"  entry      {spec.entry or spec.topology}",
    ]
    if "starts" in result:
        reason = f": {result['reason']}" if result["reason"] else ""
        lines.append(f"  starts     {result['starts']}{reason}")
    lines.append(f"  in full    {submit_flags.command_line(spec, package)}")
    return "\n".join(lines) + "\n"
