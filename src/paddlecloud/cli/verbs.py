"""The verbs of the command line: which module runs each, one line about it, and its group.

A plain table, so that help, completion and "did you mean" need no verb's module. Read by `main`,
`help` and `completion`. It imports nothing.
"""

from __future__ import annotations

JOBS = ""
PLATFORM = "the platform"
ADMIN = "the administrator"
CLIENT = "this program"
GROUPS = (JOBS, PLATFORM, ADMIN, CLIENT)

# verb: (module in paddlecloud.cli, group, summary)
VERBS: dict[str, tuple[str, str, str]] = {
    "submit": ("submit", JOBS, "start a job from a package"),
    "get": ("get", JOBS, "list jobs, the workers of a job, or quota"),
    "jobs": ("jobs", JOBS, "list running jobs by namespace"),
    "logs": ("logs", JOBS, "print or follow what a job prints"),
    "describe": ("describe", JOBS, "all about one job, and why it failed"),
    "explain": ("explain", JOBS, "why a job waits, and what would start it sooner"),
    "events": ("events", JOBS, "the history of a job"),
    "wait": ("wait", JOBS, "wait until a job ends or runs"),
    "rerun": ("rerun", JOBS, "run an ended job again, exactly as it was"),
    "kill": ("kill", JOBS, "stop a job, and with -rm forget it"),
    "file": ("file", JOBS, "put, get and list files under /pfs"),
    "up": ("up", PLATFORM, "start the platform on this machine"),
    "down": ("down", PLATFORM, "stop the platform; running jobs go on"),
    "status": ("status", PLATFORM, "what the platform is and has"),
    "serve": ("serve", PLATFORM, "run the server in the foreground"),
    "account": ("account", ADMIN, "add and list accounts, set quota, make tokens and certificates"),
    "runtime": ("runtime", ADMIN, "add, install and list Python environments for jobs"),
    "config": ("config", CLIENT, "show or switch the datacenter in use"),
    "completion": ("completion", CLIENT, "print a completion script for your shell"),
    "version": ("version", CLIENT, "print the version"),
    "help": ("helping", CLIENT, "describe a verb or a topic"),
    "flags": ("flags", CLIENT, "describe the flags every verb knows"),
    "commands": ("commands", CLIENT, "list all verbs"),
}

TOPICS = {
    "config": "the three forms of ~/.paddle/config",
    "environment": "variables the command line reads",
    "exit-codes": "what the exit code says",
    "packages": "what of a folder is sent with submit",
}

# Words of other clients, with what they are called here.
ELSEWHERE = {
    "pfs": "paddlecloud file put|get|ls",
    "cp": "paddlecloud file put|get",
    "ls": "paddlecloud file ls PATH",
    "list": "paddlecloud get jobs",
    "ps": "paddlecloud get jobs",
    "delete": "paddlecloud kill -rm JOB",
    "rm": "paddlecloud kill -rm JOB",
    "stop": "paddlecloud kill JOB, or paddlecloud down",
    "start": "paddlecloud up",
    "run": "paddlecloud submit",
    "train": "paddlecloud submit",
    "log": "paddlecloud logs JOB",
    "workers": "paddlecloud get workers JOB",
    "quota": "paddlecloud get quota",
    "login": "write your user name and password into ~/.paddle/config",
}
