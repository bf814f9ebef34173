"""The flags every verb knows: which configuration, which server, and how lists are printed.

Read by `main` for every verb; `OUTPUT` is for verbs that print what could be JSON.
"""

from __future__ import annotations

from paddlecloud.forms.go_flags import Flag, Kind

FLAGS = (
    Flag(("-config",), value="PATH", meaning="configuration file (default ~/.paddle/config)"),
    Flag(("-datacenter",), value="NAME", meaning="use this datacenter of the configuration"),
    Flag(("-endpoint",), value="URL", meaning="talk to this server"),
    Flag(("-debug",), Kind.BOOL, meaning="show a traceback when something unforeseen happens"),
)

FORMATS = ("table", "wide", "json", "yaml", "name")


def output_flag(*formats: str) -> Flag:
    allowed = formats or FORMATS
    return Flag(
        ("-o", "-output"),
        value="FORMAT",
        choices=allowed,
        meaning=f"print it as {', '.join(allowed[:-1])} or {allowed[-1]}",
    )
