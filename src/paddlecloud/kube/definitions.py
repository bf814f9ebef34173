"""The definitions of our custom resources, as the API server wants them.

`paddlejob()` is the CustomResourceDefinition of `PaddleJob`; `deploy/crds` holds it as YAML, and
a test compares. The schema is structural and has no enums: objects written for the first
operator must still be accepted, odd values are understood and warned of by the form. It refuses
only what can never work.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.forms import paddlejob as form

Schema = dict[str, Any]

ANY = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"


def _text(description: str = "") -> Schema:
    return {"type": "string", **({"description": description} if description else {})}


def _number(description: str = "", **more: Any) -> Schema:
    return {
        "type": "integer",
        "format": "int32",
        **({"description": description} if description else {}),
        **more,
    }


def _free(description: str) -> Schema:
    return {"type": "object", "description": description, ANY: True}


def _object(description: str, properties: Schema, **more: Any) -> Schema:
    return {"type": "object", "description": description, "properties": properties, **more}


def _role(description: str) -> Schema:
    return _object(
        description,
        {
            "replicas": _number("How many pods", minimum=0, default=1),
            "requests": _number("The least number of workers", minimum=0),
            "limits": _number("The largest number of workers", minimum=0),
            "template": _free("A pod template; its first container trains"),
        },
        **{
            ANY: True,
            RULES: [
                {
                    "rule": "!has(self.requests) || !has(self.limits) "
                    "|| self.requests <= self.limits",
                    "message": "requests (the least number of pods) is more than limits",
                }
            ],
        },
    )


def _paddlejob_spec() -> Schema:
    return _object(
        "What is wanted",
        {
            "worker": _role("The workers, which train"),
            "ps": _role("Parameter servers; their presence makes it a PS job"),
            "heter": _role("Heterogeneous workers, besides ps and worker"),
            "cleanPodPolicy": _text(
                "When pods are deleted after the end: Always, Never, OnFailure, OnCompletion"
            ),
            "intranet": _text("By what pods reach each other: PodIP, Service or Host"),
            "withGloo": _number("Gloo barriers: 0 off, 1 workers, 2 workers and servers"),
            "elastic": _number("Any value prepares the pods for Paddle's elastic launcher"),
            "suspend": {"type": "boolean", "description": "Stop the pods, and start none"},
            "backoffLimit": _number("How often failed pods are started again", minimum=0),
            "restartExitCodes": {
                "type": "array",
                "description": "The exit codes worth another start; empty: all",
                "items": _number(),
            },
            "activeDeadlineSeconds": {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "description": "The longest the job may run; 0 for ever",
            },
            "priority": _text("low, normal, high or very_high"),
            "schedulingPolicy": _free("For Volcano: minAvailable, queue, priorityClass"),
            "sampleSetRef": _free("A claim to mount: name, mountPath"),
        },
        **{
            ANY: True,
            RULES: [
                {
                    "rule": "has(self.worker) || has(self.ps) || has(self.heter)",
                    "message": "a job needs at least one role: write spec.worker",
                }
            ],
        },
    )


def _counts(word: str) -> Schema:
    names = ("pending", "starting", "running", "failed", "succeeded", "unknown")
    return _object(f"How the {word} pods stand", {name: _number() for name in names}, **{ANY: True})


_CONDITION = _object(
    "One thing that is so, or not",
    {
        "type": _text(),
        "status": _text(),
        "reason": _text(),
        "message": _text(),
        "lastTransitionTime": _text(),
        "observedGeneration": {"type": "integer", "format": "int64"},
    },
    required=["type", "status"],
)


def _paddlejob_status() -> Schema:
    return _object(
        "What is so, written by the operator",
        {
            "phase": _text("Pending, Starting, Running, Completed, Failed or Suspended"),
            "mode": _text("PS, Collective, Heter or Single"),
            "reason": _text("One sentence about the phase"),
            "ready": _text("Running pods of wanted pods"),
            "replicas": _number("Workers there are, for the scale subresource"),
            "selector": _text("The labels of the workers, for the scale subresource"),
            "worker": _counts("worker"),
            "ps": _counts("ps"),
            "heter": _counts("heter"),
            "startTime": _text(),
            "completionTime": _text(),
            "observedGeneration": {"type": "integer", "format": "int64"},
            "restarts": _number("How often pods were started again"),
            "failures": {
                "type": "array",
                "description": "Attempts that failed and whose pods were replaced",
                "items": _free("role, index, attempt, and how it ended"),
            },
            "allocation": _free("What the planner grants"),
            "conditions": {
                "type": "array",
                "items": _CONDITION,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"],
            },
        },
        **{ANY: True},
    )


def _column(name: str, path: str, kind: str = "string") -> Schema:
    return {"name": name, "type": kind, "jsonPath": path}


def paddlejob() -> Schema:
    """`paddlejobs.batch.paddlepaddle.org`, short `pdj`."""
    version = {
        "name": form.VERSION,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": _object(
                "A distributed training job of PaddlePaddle",
                {
                    "apiVersion": _text(),
                    "kind": _text(),
                    "metadata": {"type": "object"},
                    "spec": _paddlejob_spec(),
                    "status": _paddlejob_status(),
                },
                required=["spec"],
            )
        },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.worker.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            _column("Status", ".status.phase"),
            _column("Mode", ".status.mode"),
            _column("Ready", ".status.ready"),
            _column("Age", ".metadata.creationTimestamp", "date"),
        ],
    }
    return _definition(form.GROUP, form.KIND, form.PLURAL, "pdj", version)


def _definition(group: str, kind: str, plural: str, short: str, version: Schema) -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
            },
            "versions": [version],
        },
    }


def all_definitions() -> list[Schema]:
    return [paddlejob()]
