"""`paddlecloud job [connection flags] <action> [options]`: the second client.

It promises the grammar, the help and the exit codes of that program: 0 done, 1 the request failed
or an option is unknown, 2 the command line is wrong. Called by `main`.
"""

from __future__ import annotations

import sys

from paddlecloud.cli.job import connection
from paddlecloud.cli.job.connection import JobSession
from paddlecloud.core.errors import InvalidInput, PaddleCloudError

USAGE = "paddlecloud job [connection flags] <action> [options]"
HELP = """
The second client, for scripts written for it. `paddlecloud job -h` lists the actions as it did,
`paddlecloud job train -h` the flags of a job.

Examples:
  paddlecloud job train --job-name my_job --group-name g --start-cmd "python train.py" \\
      --job-conf config.ini --files train.py before_hook.sh --k8s-trainers 2
  paddlecloud job train --job-name x --start-cmd "sh run.sh" --k8s-gpu-cards 8 --dry-run --json
  paddlecloud job state job-4f1c09d2a7b35e60
  paddlecloud job --compat 1 list --size 5
  paddlecloud job kill job-4f1c09d2a7b35e60, job-0a1b2c3d4e5f6071
  paddlecloud job favorite job-4f1c09d2a7b35e60
  paddlecloud job replace job-4f1c09d2a7b35e60 \\
      --pods "pod=job-4f1c09d2a7b35e60-trainer-1,host=127.0.0.3"
"""
FLAGS = connection.FLAGS
ACTIONS = ("train", "state", "list", "rerun", "info", "kill", "delete", "replace", "favorite")

# As that program printed it.
OLD_HELP = """\
usage: paddlecloud job [-h] [--debug] [--server <ARG>] [--port <ARG>]
                       [--ak <ARG>] [--sk <ARG>]
                       <action> [options] ...

optional arguments:
  -h, --help          show this help message and exit
  --debug             debug mode, this will print debug message
  --server <ARG>      specify remote server host
  --port <ARG>        specify remote server port
  --ak <ARG>          your access key
  --sk <ARG>          your secret key

Specific job actions:
  <action> [options]
    train             add a new job for training
    state             return the job state
    list              list available jobs
    rerun             run job once again
    info              display the job info
    kill              kill the running job
    delete            delete the remote job
    replace           replace job 例:${JOB_ID}  --pods "pod=job-x-trainer-1,host=host1.yq01.baidu.com;pod=job-x-trainer-2,host=host2.yq01.baidu.com"
"""  # noqa: E501


def open_session(words: list[str]) -> JobSession:
    session = connection.split(words, ACTIONS)
    if not session.action:
        session.refuse_action(
            "too few arguments: job needs an action", hint="paddlecloud job --help"
        )
    if session.action not in ACTIONS:
        from paddlecloud.forms.faults import nearest

        near = nearest(session.action, ACTIONS)
        session.refuse_action(
            f"Oops, '{session.action}' is not a valid command or arg. See 'paddlecloud job --help'",
            hint=f"did you mean {near}?" if near else "",
        )
    return session


def run(session: JobSession) -> int:
    if session.action == "train":
        from paddlecloud.cli.job import train

        return train.run(session)
    from paddlecloud.cli.job import actions

    do = {
        "state": actions.state,
        "info": actions.info,
        "list": actions.list_jobs,
        "kill": actions.kill,
        "rerun": actions.rerun,
        "delete": actions.delete,
        "replace": actions.replace,
        "favorite": actions.favorite,
    }
    try:
        return do[session.action](session)
    except InvalidInput:
        raise
    except PaddleCloudError as error:
        session.debug(error)
        _say(error)
        return 1


def _say(error: PaddleCloudError) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"Error occurred: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint:  {error.hint}\n")


def show_help(words: list[str]) -> int:
    """`job -h` as it always was; `job <action> -h` by our own tables."""
    action = next((word for word in words if word in ACTIONS), "")
    if not action:
        sys.stdout.write(OLD_HELP)
        return 0
    from paddlecloud.cli.job import actions
    from paddlecloud.forms.go_flags import Flag, help_lines

    flags: tuple[Flag, ...] = (actions.JSON,)
    usage = "[options] JOB_ID" + (" ..." if action in ("kill", "rerun", "delete") else "")
    if action == "train":
        from paddlecloud.forms import train_options

        flags, usage = train_options.FLAGS, "--job-name NAME --start-cmd COMMAND [options]"
    elif action == "list":
        flags, usage = actions.LIST_FLAGS, "[options]"
    elif action == "favorite":
        flags, usage = actions.FAVORITE_FLAGS, "[options] JOB_ID ..."
    elif action == "replace":
        flags, usage = (actions.PODS, actions.JSON), '[options] JOB_ID --pods "pod=P,host=H;..."'
    lines = [f"usage: paddlecloud job {action} {usage}", "", "optional arguments:"]
    sys.stdout.write("\n".join([*lines, *help_lines(flags)]) + "\n")
    return 0
