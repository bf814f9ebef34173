"""The definitions of our custom resources, as the API server wants them.

`paddlejob()` and `trainingjob()` are the CustomResourceDefinitions of the two kinds of job,
`resource_group()` that of a share of the cluster; `deploy/crds` holds them as YAML, and a test
compares. The schemas are structural and those of jobs have no enums: objects written for the first
operators must still be accepted, odd values are understood and warned of by the form. They refuse
only what can never work.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.forms import paddlejob as form
from paddlecloud.forms import trainingjob as training_form

Schema = dict[str, Any]

ANY = "x-kubernetes-preserve-unknown-fields"
RULES = "x-kubernetes-validations"
RESOURCE_GROUPS = "resourcegroups"


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


def _policies() -> Schema:
    """What both kinds of job say about their life."""
    return {
        "cleanPodPolicy": _text(
            "When pods are deleted after the end: Always, Never, OnFailure, OnCompletion"
        ),
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
        "schedulingPolicy": _free(
            "For the planner: group, mayBorrow; for Volcano: minAvailable, queue, priorityClass"
        ),
    }


def _paddlejob_spec() -> Schema:
    return _object(
        "What is wanted",
        {
            "worker": _role("The workers, which train"),
            "ps": _role("Parameter servers; their presence makes it a PS job"),
            "heter": _role("Heterogeneous workers, besides ps and worker"),
            "intranet": _text("By what pods reach each other: PodIP, Service or Host"),
            "withGloo": _number("Gloo barriers: 0 off, 1 workers, 2 workers and servers"),
            "elastic": _number("Any value prepares the pods for Paddle's elastic launcher"),
            "sampleSetRef": _free("A claim to mount: name, mountPath"),
            **_policies(),
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
    counts = {name: _number() for name in names}
    refs = {"type": "array", "items": _free("A pod: apiVersion, kind, namespace, name, uid")}
    return _object(f"How the {word} pods stand", {**counts, "refs": refs}, **{ANY: True})


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


def _status(phases: str, roles: Schema) -> Schema:
    return _object(
        "What is so, written by the operator",
        {
            "phase": _text(phases),
            "lifecycle": _text("The same more exactly, in the words of the platform"),
            "mode": _text("PS, Collective, Heter or Single"),
            "reason": _text("One sentence about the phase"),
            "ready": _text("Running pods of wanted pods"),
            "replicas": _number("Workers there are, for the scale subresource"),
            "selector": _text("The labels of the workers, for the scale subresource"),
            **roles,
            "startTime": _text(),
            "completionTime": _text(),
            "observedGeneration": {"type": "integer", "format": "int64"},
            "restarts": _number("How often pods were started again"),
            "failures": _attempts("Attempts that failed and whose pods were replaced"),
            "successes": _attempts("Attempts that ended well, should their pods be deleted"),
            "moved": _attempts("Attempts that had to leave their node"),
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


def _attempts(description: str) -> Schema:
    row = _free("role, index, attempt, and how it ended")
    return {"type": "array", "description": description, "items": row}


def _paddlejob_status() -> Schema:
    return _status(
        "Pending, Starting, Running, Completed, Failed, Terminated or Suspended",
        {word: _counts(word) for word in ("worker", "ps", "heter")},
    )


# --- TrainingJob -------------------------------------------------------------------------------


def _trainer_role(description: str, more: Schema, **keys: Any) -> Schema:
    return _object(
        description,
        {
            "entrypoint": _text("The command to run, by a shell; default: the trainers'"),
            "resources": _free("Requests and limits of one pod"),
            "replicaSpec": _free("A pod template, instead of one made of the fields beside it"),
            **more,
        },
        **{ANY: True, **keys},
    )


def _trainingjob_spec() -> Schema:
    sizes = {
        "min-instance": _number("The least number of pods", minimum=0),
        "max-instance": _number("The largest number of pods", minimum=0),
    }
    trainer = {
        **sizes,
        "workspace": _text("The directory to run in"),
        # The scale subresource needs a value; what is below the least means the least.
        "replicas": _number("How many trainers, between least and most", minimum=0, default=1),
        "passes": _number("Ignored here, as it always was; see spec.passes"),
    }
    order = {
        "rule": "!has(self.min__dash__instance) || !has(self.max__dash__instance) "
        "|| self.min__dash__instance <= self.max__dash__instance",
        "message": "min-instance is more than max-instance",
    }
    listed = {"type": "array", "items": {"type": "object", ANY: True}}
    return _object(
        "What is wanted",
        {
            "image": _text("Of all roles"),
            "trainer": _trainer_role("The trainers", trainer, **{RULES: [order]}),
            "pserver": _trainer_role("Parameter servers", sizes, **{RULES: [order]}),
            "master": _trainer_role("A task master of the user's own, see entrypoint", {}),
            "fault_tolerant": {
                "type": "boolean",
                "description": "Go on without trainers that fail; needed for min < max",
            },
            "passes": _number("Passes over the data, for the program", minimum=1),
            "host_network": {"type": "boolean", "description": "Use the nodes' network"},
            "port": _number("The first port of parameter servers of the v1 and v2 API"),
            "ports_num": _number("How many ports for dense parameters"),
            "ports_num_for_sparse": _number("How many ports for sparse parameters"),
            "volumes": {**listed, "description": "Volumes of every pod"},
            "VolumeMounts": {**listed, "description": "Where they are mounted"},
            **_policies(),
        },
        **{
            ANY: True,
            RULES: [
                {
                    "rule": "has(self.trainer)",
                    "message": "a job needs trainers: write spec.trainer",
                }
            ],
        },
    )


def _trainingjob_status() -> Schema:
    row = _object(
        "How the pods of one role stand",
        {
            "training_resource_type": _text("MASTER, PSERVER or TRAINER"),
            "state": _text("starting, running, failed or succeeded"),
            "resource_states": _free("Number of pods by state"),
        },
        **{ANY: True},
    )
    return _status(
        "creating, running, succeeded, failed, killed or suspended",
        {
            "scale_status": _free("Always empty, as it always was"),
            "replica_statuses": {"type": "array", "items": row},
        },
    )


def _column(name: str, path: str, kind: str = "string") -> Schema:
    return {"name": name, "type": kind, "jsonPath": path}


def paddlejob() -> Schema:
    """`paddlejobs.batch.paddlepaddle.org`, short `pdj`."""
    version = _job_version(
        form.VERSION,
        "A distributed training job of PaddlePaddle",
        _paddlejob_spec(),
        _paddlejob_status(),
        ".spec.worker.replicas",
    )
    return _definition(form.GROUP, form.KIND, form.PLURAL, "pdj", version)


def trainingjob() -> Schema:
    """`trainingjobs.paddlepaddle.org`, short `tj`."""
    version = _job_version(
        training_form.VERSION,
        "A training job of the first PaddlePaddle Cloud",
        _trainingjob_spec(),
        _trainingjob_status(),
        ".spec.trainer.replicas",
    )
    names = (training_form.GROUP, training_form.KIND, training_form.PLURAL)
    return _definition(*names, "tj", version)


def _job_version(
    name: str, description: str, spec: Schema, status: Schema, replicas: str
) -> Schema:
    return {
        "name": name,
        "served": True,
        "storage": True,
        "schema": {
            "openAPIV3Schema": _object(
                description,
                {
                    "apiVersion": _text(),
                    "kind": _text(),
                    "metadata": {"type": "object"},
                    "spec": spec,
                    "status": status,
                },
                required=["spec"],
            )
        },
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": replicas,
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


def _definition(
    group: str, kind: str, plural: str, short: str, version: Schema, scope: str = "Namespaced"
) -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
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


# --- ResourceGroup -----------------------------------------------------------------------------


def _amounts(description: str) -> Schema:
    quantity = {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)(m|k|[KMGTPE]i?|e[0-9]+)?$",
    }
    whole = _number(minimum=0)
    amounts = {"cpu": quantity, "memory": quantity, "gpu": whole, "replicas": whole}
    return _object(description, amounts)


def resource_group() -> Schema:
    """`resourcegroups.paddlepaddle.org`, short `rg`, of the whole cluster."""
    spec = _object(
        "What the jobs of some namespaces have together",
        {
            "guarantee": _amounts("Theirs whenever they want it; others may only borrow it"),
            "limit": _amounts("The most they may hold; what is not named has no limit"),
            "weight": _number("Their share of what nobody is guaranteed", minimum=1, default=1),
            "namespaces": {
                "type": "array",
                "description": "Whose jobs may use it",
                "items": _text(),
                "x-kubernetes-list-type": "set",
            },
        },
    )
    version = _job_version("v1", "A share of the cluster", spec, _group_status(), "")
    version["subresources"] = {"status": {}}
    version["additionalPrinterColumns"] = [
        _column("Cpu", ".spec.guarantee.cpu"),
        _column("Gpu", ".spec.guarantee.gpu"),
        _column("Weight", ".spec.weight", "integer"),
        _column("Valid", ".status.conditions[?(@.type=='Valid')].status"),
        _column("Age", ".metadata.creationTimestamp", "date"),
    ]
    names = (training_form.GROUP, "ResourceGroup", RESOURCE_GROUPS)
    return _definition(*names, "rg", version, "Cluster")


def _group_status() -> Schema:
    conditions = {"type": "array", "items": _CONDITION, "x-kubernetes-list-type": "map"}
    conditions["x-kubernetes-list-map-keys"] = ["type"]
    return _object("What is so, written by the operator", {"conditions": conditions})


def all_definitions() -> list[Schema]:
    return [paddlejob(), trainingjob(), resource_group()]
