"""`pod=P,host=H;pod=P,host=H`: the text of `job replace --pods`.

Reports everything wrong with it at once. Whether such pods exist, only a server knows.
"""

from __future__ import annotations

from paddlecloud.forms.faults import FaultList, nearest

_KEYS = ("pod", "host")
_SHAPE = "pod=NAME,host=HOST;pod=NAME,host=HOST"


def parse_pods(text: str, faults: FaultList, field: str = "--pods") -> dict[str, str]:
    """Host by pod, in the order written."""
    found: dict[str, str] = {}
    parts = [part.strip() for part in text.split(";")]
    for part in filter(None, parts):
        pair = _pair(part, faults, field)
        if pair is None:
            continue
        if pair["pod"] in found:
            faults.add(field, f"{pair['pod']} is named twice", part)
            continue
        found[pair["pod"]] = pair["host"]
    if not any(parts):
        faults.add(field, f"names no pod; write {_SHAPE}", text)
    return found


def _pair(part: str, faults: FaultList, field: str) -> dict[str, str] | None:
    before, pair = len(faults), dict[str, str]()
    for word in part.split(","):
        key, equals, value = (piece.strip() for piece in word.partition("="))
        if not equals or key not in _KEYS:
            near = nearest(key, _KEYS)
            advice = f"; did you mean {near}?" if near and equals else ""
            faults.add(field, f"must be {_SHAPE}{advice}", word.strip() or part)
        elif key in pair:
            faults.add(field, f"{key} is given twice for one pod", part)
        else:
            pair[key] = value
    missing = [key for key in _KEYS if not pair.get(key)]
    if missing and len(faults) == before:
        faults.add(field, f"lacks the {' and the '.join(missing)} of a pod", part)
    return pair if len(faults) == before else None
