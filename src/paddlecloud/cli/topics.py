"""The topics of `paddlecloud help`: exit codes, configuration, environment, packages and paths;
and the words `flags` and `commands` of the first client.

Texts only; read by `helping`.
"""

from __future__ import annotations

from paddlecloud.cli.verbs import VERBS

EXIT_CODES = """What the exit code says:
    0    done
    1    the request failed
    2    the command line or the request is wrong
    3    not logged in, or not allowed
    4    not found
    5    conflict: a live job has that name, or the like
    6    no server answers
   10    with --wait, --follow or wait: the job did not succeed
  130    interrupted by Ctrl-C; `submit --follow` and `--wait` only detach, the job goes on
A copy of many files that failed for some says which, does the others, and ends with 1.
"""

CONFIG = """~/.paddle/config (on Windows .paddle\\config in your profile folder) says which server
to talk to and as whom. Any of three forms:

  1  The first datacenter is used; a certificate logs in over TLS.

     datacenter1:
       username: user
       usercert: /path/to/user.pem
       userkey:  /path/to/user-key.pem
       endpoint: dc1.example.org

  2  The datacenter with `active: true` is used; at most one may have it.

     datacenters:
     - name: datacenter1
       active: true
       username: user
       password: secret
       endpoint: http://dc1.example.org

  3  The datacenter that `current-datacenter` names is used. `paddlecloud up` writes this form.

     current-datacenter: local
     datacenters:
     - name: local
       username: user
       token: pct_...
       endpoint: http://127.0.0.1:8000

Other settings of a datacenter: `cacert`, the CA that signed the server's certificate (default:
`ca.pem` beside `usercert`, else the system's); `token`, used instead of a password.
A token fetched with a password is kept in ~/.paddle/token_cache, one per datacenter, endpoint and
user, and fetched anew when the server no longer takes it.

  paddlecloud config                        which datacenters there are, and which one is in use
  paddlecloud config use-datacenter NAME    use another one
"""

ENVIRONMENT = """Variables the command line reads:
  PADDLECLOUD_CONFIG     configuration file (default ~/.paddle/config)
  PADDLECLOUD_ENDPOINT   talk to this server; credentials of another one are not sent to it
  PADDLECLOUD_TOKEN      log in with this token
  PADDLECLOUD_HOME       state of the embedded platform (default ~/.paddlecloud)
  PADDLECLOUD_JOB_COMPAT 1 or 2: `paddlecloud job` answers as that release did (default 2)
  PADDLECLI_HOME         settings of the second client (default ~/.paddlecli)
  PADDLECLOUD_UPDATE_INDEX  where `paddlecloud update` looks: a simple package index or a folder
  PADDLECLOUD_DEBUG      1: show a traceback with every error
  NO_COLOR               anything: no colours, on a terminal either
"""

PACKAGES = """What of a folder is sent with `paddlecloud submit`:
  All regular files and folders, empty ones too; executable files stay executable.
  Left behind: .git, .hg, .svn, __pycache__, what .gitignore and .paddleignore name, and symbolic
  links and special files (these are listed).

The two files are read at the top of the package. One pattern per line:
  # text      a comment
  *.gz        any file or folder of that name, at every depth
  /data       only at the top of the package
  build/      only folders
  a/b, **/x   with a / inside, counted from the top; ** crosses folders
  !keep.gz    sent after all; later lines win, .paddleignore comes last
A folder that is left behind is not looked into. The server keeps a package by its digest: the
same files are sent once, and a re-run uses the very same bytes.
"""

PATHS = """Where files are on the platform:
  /pfs/<datacenter>/home/<user>/...    your own; nobody else can see or name them
  /pfs/<datacenter>/public/...         for everyone to read

A job sees the same paths: what you copy to /pfs/local/home/alice/data a job of yours opens as
/pfs/local/home/alice/data, and what it writes there you list and fetch.
  /pfs/<datacenter>/home/<user>/jobs/<job>/output   what a job wrote to $OUTPUT_PATH, kept after it;
                                                    paddlecloud outputs JOB lists and fetches it

`~` is your own home on the platform, /pfs/<datacenter>/home/<user>, in every command that takes
a path there: '~/data'. Quote it: your shell replaces a bare ~ by your home on this machine. Where
only the platform can be meant (pfs ls, cat, stat, du, mkdir; file; publish) that is understood,
and a note says so; rm and mv ask for the quotes; for cp and sync it is the local folder it has
become. Programs and the REST API write the whole path.

In a command a path that begins with /pfs/ or ~/ is on the platform, every other one is local; a
local folder /pfs is written /./pfs, and one called ~ is ./~. `pfs ls` and `pfs du` without a path
mean your own folder.

Patterns: * any characters, ? one, [a-z] one of these, within one name. Your shell expands
unquoted ones to local files, so quote those for the platform: '~/data/part-*.gz'.
Spaces need quotes too. A path that begins with - comes after --.

A slash at the end: `src/` means what is in the folder, `src` the folder itself; `target/` means
into that folder, which is made if it is not there. Names are Unicode (NFC), at most 255 bytes
each and 4,096 in all, without control characters. There is no `..`. Symbolic links and special
files are left out, and said so.
"""


def text_of(topic: str) -> str | None:
    if topic == "flags":
        return _flags()
    if topic == "commands":
        return "".join(f"{verb}\n" for verb in VERBS)
    return {
        "exit-codes": EXIT_CODES,
        "config": CONFIG,
        "environment": ENVIRONMENT,
        "packages": PACKAGES,
        "paths": PATHS,
    }.get(topic)


def _flags() -> str:
    from paddlecloud.cli.everywhere import FLAGS
    from paddlecloud.forms.go_flags import help_lines

    lines = [
        "Flags every subcommand knows, before or after it:",
        *help_lines(FLAGS),
        "",
        "-x v, -x=v, --x v and --x=v are the same; a switch takes no value but may be -x=false.",
    ]
    return "\n".join(lines) + "\n"
