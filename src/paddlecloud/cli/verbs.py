"""The verbs of the command line: which module runs each, one line about it, and its group.

A plain table, so that help, completion and "did you mean" need no verb's module. Read by `main`,
`help` and `completion`. It imports nothing.
"""

from __future__ import annotations

JOBS = ""
FILES = "PFS"  # the head the first client had
PLATFORM = "the platform"
ADMIN = "the administrator"
CLIENT = "this program"
OLDER = "scripts of the older clients"
GROUPS = (JOBS, FILES, PLATFORM, ADMIN, CLIENT, OLDER)

# What to type once the platform runs.
NEXT = 'paddlecloud submit --mode single -entry "python train.py" ./pkg'

# verb: (module in paddlecloud.cli, group, summary)
VERBS: dict[str, tuple[str, str, str]] = {
    "submit": ("submit", JOBS, "start a job from a package"),
    "get": ("get", JOBS, "list jobs, the workers of a job, quota or registries"),
    "logs": ("logs", JOBS, "print or follow what a job prints"),
    "describe": ("describe", JOBS, "all about one job, and why it failed"),
    "outputs": ("outputs", JOBS, "list or fetch what a job left"),
    "explain": ("explain", JOBS, "why a job waits, and what would start it sooner"),
    "wait": ("wait", JOBS, "wait until a job ends or runs"),
    "kill": ("kill", JOBS, "stop a job, and with -rm forget it"),
    "rerun": ("rerun", JOBS, "run an ended job again, exactly as it was"),
    "events": ("events", JOBS, "the history of a job"),
    "scale": ("scale", JOBS, "change the number of trainers of a running job"),
    "registry": ("registry", JOBS, "keep logins to registries of images, for jobs to pull with"),
    "delete": ("delete", JOBS, "forget a registry"),
    "pfs": ("pfs.verb", FILES, "copy, list, compare and remove files under /pfs"),
    "publish": ("publish", FILES, "share a file by a link that needs no login"),
    "up": ("up", PLATFORM, "start the platform on this machine"),
    "status": ("status", PLATFORM, "what the platform is and has"),
    "down": ("down", PLATFORM, "stop the platform; running jobs go on"),
    "serve": ("serve", PLATFORM, "run the server in the foreground"),
    "pfsserver": ("pfsserver", PLATFORM, "run the file server in the foreground"),
    "controller": ("controller", PLATFORM, "run the operator for Kubernetes in the foreground"),
    "manifests": ("manifests", PLATFORM, "print what a Kubernetes cluster needs, for kubectl"),
    "account": ("account", ADMIN, "add and list accounts, set quota, make tokens and certificates"),
    "group": ("group", ADMIN, "groups: who is in them, what they may use and what is idle"),
    "runtime": ("runtime", ADMIN, "add, install and list Python environments for jobs"),
    "config": ("config", CLIENT, "show or switch the datacenter in use"),
    "update": ("update.verb", CLIENT, "switch to another release of this program"),
    "completion": ("completion", CLIENT, "print a completion script for your shell"),
    "version": ("version", CLIENT, "print the version"),
    "help": ("helping", CLIENT, "describe a verb or a topic; alone: all of them"),
    "jobs": ("jobs", OLDER, "list running jobs by namespace"),
    "ls": ("pfs.old_ls", OLDER, "list files, as the first client did"),
    "cp": ("pfs.old_cp", OLDER, "copy files and folders, as the first client did"),
    "rm": ("pfs.rm", OLDER, "remove files and folders"),
    "mkdir": ("pfs.mkdir", OLDER, "make folders"),
    "mv": ("pfs.mv", OLDER, "move or rename files and folders"),
    "file": ("file", OLDER, "put, get and list files"),
    "job": ("job.verb", OLDER, "the second client: train, state, list, info, kill, rerun, replace"),
    "algo": ("algo", OLDER, "the experiments that jobs of the second client belong to"),
    "cluster": ("cluster", OLDER, "the clusters, and what of them is yours to use"),
    "token": ("token", OLDER, "the named key pairs of the second client"),
    "flags": ("flags", OLDER, "describe the flags every verb knows"),
    "commands": ("commands", OLDER, "list all verbs"),
}

# What a day with the platform takes, in the order it takes it: `paddlecloud` alone shows these.
DAILY = (
    *("up", "submit", "get", "logs", "describe", "explain", "outputs", "wait", "kill", "rerun"),
    *("pfs", "status", "down"),
)

# Verbs of two words: (module in paddlecloud.cli, summary)
SUBVERBS: dict[str, tuple[str, str]] = {
    "pfs cp": ("pfs.cp", "copy files and folders, to /pfs, from /pfs or within it"),
    "pfs ls": ("pfs.ls", "list a folder"),
    "pfs rm": ("pfs.rm", "remove files and folders"),
    "pfs mkdir": ("pfs.mkdir", "make folders"),
    "pfs mv": ("pfs.mv", "move or rename files and folders"),
    "pfs stat": ("pfs.stat", "all about one file or folder"),
    "pfs cat": ("pfs.cat", "print the bytes of files"),
    "pfs sync": ("pfs.sync", "make one folder like another"),
    "pfs du": ("pfs.du", "how much space folders take"),
}

TOPICS = {
    "config": "the three forms of ~/.paddle/config",
    "environment": "variables the command line reads",
    "exit-codes": "what the exit code says",
    "packages": "what of a folder is sent with submit",
    "paths": "where files are: /pfs/<datacenter>/home/<user>, or ~",
}

# Words of other clients, with what they are called here.
ELSEWHERE = {
    "stat": "paddlecloud pfs stat PATH",
    "cat": "paddlecloud pfs cat PATH",
    "sync": "paddlecloud pfs sync FROM TO",
    "du": "paddlecloud pfs du PATH",
    "put": "paddlecloud pfs cp FILE /pfs/...",
    "upload": "paddlecloud pfs cp FILE /pfs/...",
    "download": "paddlecloud outputs JOB FOLDER, or paddlecloud pfs cp /pfs/... FOLDER",
    "output": "paddlecloud outputs JOB [FOLDER]",
    "fetch": "paddlecloud outputs JOB FOLDER",
    "share": "paddlecloud publish PATH",
    "list": "paddlecloud get jobs",
    "ps": "paddlecloud get jobs",
    "remove": "paddlecloud kill -rm JOB",
    "stop": "paddlecloud kill JOB, or paddlecloud down",
    "start": "paddlecloud up",
    "run": "paddlecloud submit",
    "train": "paddlecloud submit",
    "log": "paddlecloud logs JOB",
    "workers": "paddlecloud get workers JOB",
    "quota": "paddlecloud get quota",
    "login": "write your user name and password into ~/.paddle/config",
}


def module_of(verb: str) -> str:
    """The module in paddlecloud.cli that runs `submit` or `pfs cp`; empty for no verb."""
    if verb in SUBVERBS:
        return SUBVERBS[verb][0]
    return VERBS[verb][0] if verb in VERBS else ""


def actions_of(verb: str) -> tuple[str, ...]:
    """The second words of a verb that has them."""
    return tuple(both.partition(" ")[2] for both in SUBVERBS if both.startswith(verb + " "))
