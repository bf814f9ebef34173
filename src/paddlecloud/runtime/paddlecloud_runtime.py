"""Runs in a pod in front of a training program, and answers what the program asks.

    python3 paddlecloud_runtime.py MESSAGE_FILE PROGRAM [ARGUMENT...]

runs the program as its child and ends as the program ends, with its exit code or 128 + its signal.
Signals reach the program, also through shells around it; after TERM or INT all that were reached
are waited for, so that a program can save though its shell is gone. Orphans are reaped. What the
program writes to stderr passes through unchanged; of a failure the cause is left in MESSAGE_FILE,
where the kubelet looks for it, unless the program left words of its own.

    import paddlecloud_runtime as runtime

gives a program its `role()`, `rank()` and `world_size()`, the addresses of its `peers()` as they
are now, and `wait_for_servers()`.

Delivered as it is: the standard library and the syntax of Python 3.6 only, in ASCII.
"""

import errno
import os
import re
import select
import signal
import socket
import sys
import time
from typing import Dict, List, Optional, Set, Tuple

# --- for programs --------------------------------------------------------------------------------

PEERS_FOLDER = "/var/run/paddlecloud/peers"
_ROLES = {
    "TRAINER": "trainer",
    "PSERVER": "pserver",
    "HETER_TRAINER": "heter",
    "MASTER": "master",
}
_ENDPOINTS = {
    "trainer": "PADDLE_TRAINER_ENDPOINTS",
    "pserver": "PADDLE_PSERVERS_IP_PORT_LIST",
    "heter": "PADDLE_HETER_ENDPOINTS",
}


def role() -> str:
    """`trainer`, `pserver`, `heter` or `master`."""
    return _ROLES[os.environ.get("TRAINING_ROLE", "TRAINER")]


def rank() -> int:
    """The index within the role, from 0."""
    return int(os.environ.get("PADDLE_TRAINER_ID", "0"))


def world_size() -> int:
    """The number of trainers, as it is now."""
    return len(peers("trainer")) or int(os.environ.get("PADDLE_TRAINERS_NUM", "1"))


def peers(of: str = "trainer") -> List[str]:
    """`host:port` of every replica of a role, by rank. Ask again to learn of a change."""
    if of not in _ENDPOINTS:
        raise ValueError("{!r} is none of {}".format(of, ", ".join(sorted(_ENDPOINTS))))
    return [one for one in _latest(_ENDPOINTS[of]).split(",") if one]


def _latest(name: str) -> str:
    """A variable as the mounted file has it, which follows changes, or else as at the start."""
    try:
        with open(os.path.join(PEERS_FOLDER, name)) as file:
            return file.read().strip()
    except OSError:
        return os.environ.get(name, "")


def wait_for_servers(timeout_s: float = 600.0) -> List[str]:
    """Returns the addresses of the parameter servers once every one of them listens.

    Raises OSError, naming those that do not, after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        servers = peers("pserver")
        silent = [one for one in servers if not _listens(one)]
        if not silent:
            return servers
        if time.monotonic() > deadline:
            missing = ", ".join(silent)
            raise OSError("no answer within {:g} s from {}".format(timeout_s, missing))
        time.sleep(0.5)


def _listens(endpoint: str) -> bool:
    host, _, port = endpoint.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), 2.0).close()
        return True
    except OSError:
        return False


# --- why a program failed ------------------------------------------------------------------------

CANNOT_START = "cannot start: "
_TAIL_BYTES = 16 * 1024  # of stderr, to find the cause in
_MAX_WORDS = 1000
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(.+)", line (\d+)')
_SIGNAL_WORDS = {
    signal.SIGABRT: "aborted",
    signal.SIGBUS: "bad memory access",
    signal.SIGFPE: "arithmetic error",
    signal.SIGILL: "instruction this processor does not know",
    signal.SIGSEGV: "segmentation fault",
    signal.SIGXCPU: "out of CPU time",
}


def cause(code: int, said: str) -> str:
    """Why a program ended with this code after these last words on stderr; nothing for 0."""
    if code == 0:
        return ""
    if code - 128 in set(signal.Signals):
        return _signal_words(signal.Signals(code - 128))
    # Python ends with 1 after an exception that nobody caught.
    words = _exception(said) if code == 1 else ""
    if not words:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        words = "last line on stderr: {}".format(lines[-1]) if lines else ""
    return words[:_MAX_WORDS]


def _signal_words(number: signal.Signals) -> str:
    meaning = _SIGNAL_WORDS.get(number)
    return "killed by {}".format(number.name) + (" ({})".format(meaning) if meaning else "")


def _exception(said: str) -> str:
    """The last exception that was shown, and where it was raised."""
    _, found, shown = said.rpartition(_TRACEBACK)
    if not found:
        return ""
    place = ""
    for line in shown.splitlines():
        frame = _FRAME.match(line)
        if frame:
            place = " ({}:{})".format(os.path.basename(frame.group(1)), frame.group(2))
        elif line and not line[0].isspace():
            return line[: _MAX_WORDS - len(place)] + place
    return ""


def leave_words(path: str, words: str) -> None:
    """For the kubelet; where the program has said something itself, that stays."""
    try:
        if words and os.stat(path).st_size == 0:
            with open(path, "a", encoding="utf-8", errors="replace") as file:
                file.write(words)
    except OSError:
        pass  # not in a pod, or not allowed: the exit code says the rest


# --- running a program ---------------------------------------------------------------------------

_PASSED_ON = tuple(
    getattr(signal, "SIG" + name) for name in "HUP INT QUIT USR1 USR2 TERM CONT WINCH".split()
)
# Python ignores these for itself, and a program would inherit that.
_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD)
_ENDING = (signal.SIGTERM, signal.SIGINT)
_PIPE_READS = 16
_PR_SET_CHILD_SUBREAPER = 36
_SHELLS = ("ash", "bash", "busybox", "dash", "ksh", "sh", "zsh")


def run(message_file: str, command: List[str]) -> int:
    """Run the program to its end; the code to end with."""
    wake, woken = os.pipe()
    for end in (wake, woken):
        os.set_blocking(end, False)
    # What whoever started us ignores (nohup), the program ignores too.
    heeded = [one for one in _PASSED_ON if signal.getsignal(one) != signal.SIG_IGN]
    for number in (*heeded, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: None)
    _adopt_orphans()
    signal.set_wakeup_fd(woken)  # every signal's number arrives there, in order
    child, errors = _start(message_file, command, heeded)
    said = _Copied(errors)
    code: Optional[int] = None
    awaited: Set[int] = set()  # who was told to end
    while code is None or any(map(_exists, awaited)):
        ready = select.select([wake, *said.open_ends()], [], [])[0]
        if errors in ready:
            said.copy()
        if wake not in ready:
            continue
        for number in os.read(wake, 4096):
            if number == signal.SIGCHLD:
                code = _reap().get(child, code)
                continue
            reached = _pass_on(number, child)
            if number in _ENDING:
                awaited.update(reached)
    said.copy_rest()
    leave_words(message_file, cause(code, said.tail.decode("utf-8", "replace")))
    return code


def _adopt_orphans() -> None:
    """The first process of a container does; elsewhere (shareProcessNamespace) it is asked for."""
    if os.getpid() != 1:
        try:
            import ctypes

            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except (ImportError, OSError, AttributeError):
            pass  # what a shell leaves behind is then not waited for


def _start(message_file: str, command: List[str], heeded: List[signal.Signals]) -> Tuple[int, int]:
    """Its process id, and the end of a pipe that its stderr comes out of."""
    errors, stderr = os.pipe()
    # A signal that comes meanwhile waits until somebody is there who knows what to do with it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, heeded)
    child = os.fork()
    if child:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(stderr)
        os.set_blocking(errors, False)
        return child, errors
    try:
        signal.set_wakeup_fd(-1)
        for number in (*heeded, *_RESTORED):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.dup2(stderr, 2)
        os.execvp(command[0], command)
    except OSError as error:
        words = "{}{}: {}".format(CANNOT_START, command[0], error.strerror)
        leave_words(message_file, words)
        os.write(2, (words + "\n").encode("utf-8", "replace"))
        os._exit(127 if error.errno == errno.ENOENT else 126)
    raise AssertionError("a program that was started does not come back")


class _Copied:
    """Stderr of the program on its way to our own; its end is kept."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._is_open = True
        self.tail = b""

    def open_ends(self) -> List[int]:
        return [self._source] if self._is_open else []

    def copy(self) -> bool:
        """Whether there may be more."""
        try:
            found = os.read(self._source, 65536)
        except BlockingIOError:
            return False
        self._is_open = bool(found)
        self.tail = (self.tail + found)[-_TAIL_BYTES:]
        while found:
            try:
                found = found[os.write(2, found) :]
            except BlockingIOError:
                select.select([], [2], [])
            except OSError:
                break  # nobody listens any more; the program need not stop for that
        return self._is_open

    def copy_rest(self) -> None:
        """What was written before the program ended, at most what a pipe holds; others that are
        still writing end with us."""
        for _ in range(_PIPE_READS):
            if not self._is_open or not self.copy():
                return


def _reap() -> Dict[int, int]:
    """The codes of all that have ended, by process id."""
    ended: Dict[int, int] = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if not process:
            return ended
        killed = os.WIFSIGNALED(status)
        ended[process] = 128 + os.WTERMSIG(status) if killed else os.WEXITSTATUS(status)


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _pass_on(number: int, child: int) -> List[int]:
    """To the program, or what is left of it, and to what its shells run: shells keep signals to
    themselves. Who was reached."""
    processes = _processes()
    ours = [one for one, (_, parent) in processes.items() if parent == os.getpid()]
    reached = ours if ours and child not in ours else [child]
    for process in reached:  # which grows
        if processes.get(process, ("", 0))[0] in _SHELLS:
            reached += [one for one, (_, parent) in processes.items() if parent == process]
    for process in reached:
        try:
            os.kill(process, number)
        except OSError:
            pass  # it has ended meanwhile
    return reached


def _processes() -> Dict[int, Tuple[str, int]]:
    """Name and parent of every process there is."""
    found: Dict[int, Tuple[str, int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/{}/stat".format(entry), "rb") as file:
                    before, _, after = file.read().rpartition(b")")
            except OSError:
                continue
            name = before.partition(b"(")[2].decode("ascii", "replace")
            found[int(entry)] = (name, int(after.split()[1]))
    return found


def main(arguments: List[str]) -> int:
    if len(arguments) < 2:
        sys.stderr.write("usage: paddlecloud_runtime.py MESSAGE_FILE PROGRAM [ARGUMENT...]\n")
        return 2
    # Last, so that nothing of the program's own is hidden.
    own = os.path.dirname(os.path.abspath(__file__))
    paths = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = "{}:{}".format(paths, own) if paths else own
    return run(arguments[0], arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
