"""The parent of the platform's programs: starts them, and starts again what dies unasked.

It promises: a part that was ready once is started again whenever it ends, on the port it had, after
0.2 s that double up to 30 s and are forgotten after a minute of health. It never gives up then: the
causes that last (a taken port, a full disk, a database away) also go away, and one try in 30 s is
cheap. A part that ends before it was ever ready is not started again: somebody waits in
`paddlecloud up` for exactly that answer. SIGTERM, SIGINT and SIGHUP end all parts (TERM, then
KILL); SIGUSR1, sent by `up`, tries at once what waits.

Nothing outlives it: the kernel kills the parts when their parent dies (PR_SET_PDEATHSIG). Adopting
live parts instead would keep the address answering after a kill -9 of this process, but nobody
could say then how such a part ended, and two owners of one state folder would be a matter of
timing. Jobs are no parts; they go on in any case, and the next `up` finds a free folder.

Started by `platform_life` as a program of its own, isolated and by its path: it imports nothing of
the package, because it stays in memory as long as the platform does. It never looks at what the
parts do.

It keeps the sockets that parts listen on: a part sends up each one it makes, and is given all of
them when it is started again. So between two lives of a part its address is nobody else's to take
(jobs share the machine's network, and whoever answers there is sent tokens), and who connects
meanwhile waits.

How a part is described is said at `Part`; what is known of them is in `run/supervisor.json`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time

FIRST_WAIT_S = 0.2
LONGEST_WAIT_S = 30.0
HEALTHY_AFTER_S = 60.0
STOP_WITHIN_S = 10.0
# A part that starts is looked at this often; one that takes long, less often.
LOOK_EVERY_S = 0.01
LOOK_LATE_EVERY_S = 0.5
LATE_AFTER_S = 5.0
LOCK_PATIENCE_S = 2.0
EXIT_ALREADY = 5
_PR_SET_PDEATHSIG = 1
# `name=descriptor`, separated by blanks: sockets kept from an earlier life, and as KEEPER the
# channel that a part sends new ones through. Read by `server/listeners.py`.
LISTENERS = "PADDLECLOUD_LISTENERS"
KEEPER = "keeper"


def wait_before_s(previous_s: float, healthy_s: float) -> float:
    """How long to wait before the next start, after a wait and the health that followed it."""
    if not previous_s or healthy_s >= HEALTHY_AFTER_S:
        return FIRST_WAIT_S
    return min(previous_s * 2, LONGEST_WAIT_S)


def how_it_ended(status: int) -> str:
    """`killed by signal 9`, from what waitpid said."""
    code = os.waitstatus_to_exitcode(status)
    return f"killed by signal {-code}" if code < 0 else f"exited with code {code}"


class Part:
    """One program.

    `command` is what is executed, with `--port N` behind it from the second start on; `run_file` is
    the JSON file it writes once it is ready, with its `pid` and `port`; `log` takes its output,
    empty for where this process writes.
    """

    def __init__(self, name: str, command: list[str], run_file: str, log: str = "") -> None:
        self.name = name
        self.command = command
        self.run_file = run_file
        self.log = log
        self.pid = 0
        self.port = 0
        self.started_s = 0.0
        self.ready_s = 0.0
        self.was_ever_ready = False
        self.wait_s = 0.0
        self.next_start_s = 0.0
        self.restarts = 0
        self.last_end = ""
        self.last_end_at = 0.0
        self.channel: socket.socket | None = None
        self.listeners: dict[str, int] = {}

    @property
    def is_starting(self) -> bool:
        return bool(self.pid) and not self.ready_s

    def launch(self) -> None:
        parent = os.getpid()
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.setblocking(False)
        self.pid = os.fork()
        if not self.pid:
            try:
                self._become(parent, theirs.fileno())
            except BaseException as error:
                print(f"error: cannot start the {self.name}: {error}", file=sys.stderr, flush=True)
            finally:
                os._exit(126)
        theirs.close()
        self.started_s = time.monotonic()
        self.ready_s = 0.0

    def _become(self, parent: int, channel: int) -> None:
        """In the new process: die with the parent, then be the program."""
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        if os.getppid() != parent:
            raise OSError("the supervisor is gone")
        if self.log:
            opened = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            os.dup2(opened, 1)
            os.dup2(opened, 2)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and exec keeps that
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        kept = {**self.listeners, KEEPER: channel}
        for descriptor in kept.values():
            os.set_inheritable(descriptor, True)
        os.environ[LISTENERS] = " ".join(f"{name}={fd}" for name, fd in kept.items())
        own_port = ["--port", str(self.port)] if self.port else []
        os.execv(self.command[0], [*self.command, *own_port])

    def look(self) -> None:
        """Whether it has become ready, and where it listens."""
        try:
            with open(self.run_file, encoding="utf-8") as file:
                facts = json.load(file)
        except (OSError, ValueError):
            return
        if facts.get("pid") == self.pid:
            self.port = int(facts.get("port", 0))
            self.take_listeners()
            self.ready_s = time.monotonic()
            self.was_ever_ready = True

    def take_listeners(self) -> None:
        """What it sent up. Until it is taken the kernel keeps it, also if the sender has died."""
        assert self.channel is not None
        while True:
            try:
                name, descriptors, _, _ = socket.recv_fds(self.channel, 64, 1)
            except (BlockingIOError, ConnectionResetError):
                return
            if not name:
                return
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
                before = self.listeners.pop(name.decode(), None)
                if before is not None:
                    os.close(before)
                self.listeners[name.decode()] = descriptor

    def ended(self, status: int) -> None:
        now_s = time.monotonic()
        self.take_listeners()
        if self.channel is not None:
            self.channel.close()
        healthy_s = now_s - self.ready_s if self.ready_s else 0.0
        self.pid = 0
        self.wait_s = wait_before_s(self.wait_s, healthy_s)
        self.next_start_s = now_s + self.wait_s
        self.last_end = how_it_ended(status)
        self.last_end_at = time.time()


class Supervisor:
    def __init__(self, state: str, parts: list[Part]) -> None:
        self._parts = parts
        self._record = os.path.join(state, "run", "supervisor.json")
        self._asked = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        self._signals = self._asked | {signal.SIGCHLD, signal.SIGUSR1}

    def run(self) -> int:
        """Until it is asked to end (0), or a part could not be started at all (its code)."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        # Blocked signals wait to be taken by sigtimedwait: no handler, so nothing is interrupted.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._signals)
        for part in self._parts:
            part.launch()
        self._write()
        code: int | None = None
        while code is None:
            code = self._turn()
        self._stop()
        os.unlink(self._record)
        return code

    def _turn(self) -> int | None:
        """Wait for the next thing to happen and deal with it; the exit code when it is the end."""
        number = self._next_signal(self._timeout_s())
        if number in self._asked:
            return 0
        if number == signal.SIGUSR1:
            for part in self._parts:
                if not part.pid:
                    part.wait_s = part.next_start_s = 0.0
        is_changed = False
        for part, status in self._reaped():
            part.ended(status)
            is_changed = True
            if not part.was_ever_ready:
                say(f"the {part.name} did not start: {part.last_end}")
                return max(os.waitstatus_to_exitcode(status), 1)
            say(f"the {part.name} ended: {part.last_end}; next start in {part.wait_s:g} s")
        for part in self._parts:
            is_changed |= self._attend(part)
        if is_changed:
            self._write()
        return None

    def _attend(self, part: Part) -> bool:
        """Start what is due, see what became ready; whether anything changed."""
        if not part.pid:
            if time.monotonic() < part.next_start_s:
                return False
            part.launch()
            part.restarts += 1
            return True
        if not part.is_starting:
            return False
        part.look()
        if part.ready_s and part.restarts:
            say(f"the {part.name} is back (pid {part.pid}); restarts so far: {part.restarts}")
        return bool(part.ready_s)

    def _timeout_s(self) -> float | None:
        now_s = time.monotonic()
        waits_s = [max(part.next_start_s - now_s, 0.0) for part in self._parts if not part.pid]
        for part in self._parts:
            if part.is_starting:
                is_late = now_s - part.started_s > LATE_AFTER_S
                waits_s.append(LOOK_LATE_EVERY_S if is_late else LOOK_EVERY_S)
        return min(waits_s, default=None)

    def _next_signal(self, timeout_s: float | None) -> int:
        if timeout_s is None:
            return int(signal.sigwait(self._signals))
        found = signal.sigtimedwait(self._signals, timeout_s)
        return found.si_signo if found is not None else 0

    def _reaped(self) -> list[tuple[Part, int]]:
        """Every part that has ended, with how. A signal may stand for several ends."""
        ended = []
        for part in self._parts:
            if part.pid:
                pid, status = os.waitpid(part.pid, os.WNOHANG)
                if pid:
                    ended.append((part, status))
        return ended

    def _stop(self) -> None:
        """TERM to all, KILL for those that take too long or when Ctrl-C comes again."""
        for order in (signal.SIGTERM, signal.SIGKILL):
            living = [part for part in self._parts if part.pid]
            for part in living:
                os.kill(part.pid, order)  # not reaped yet, so the pid is still its own
            if order == signal.SIGKILL and living:
                say(f"killed what did not end: {', '.join(part.name for part in living)}")
            deadline_s = time.monotonic() + STOP_WITHIN_S
            while any(part.pid for part in self._parts):
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or self._next_signal(left_s) == signal.SIGINT:
                    break
                for part, _ in self._reaped():
                    part.pid = 0

    def _write(self) -> None:
        facts = {
            "pid": os.getpid(),
            "is_ready": all(part.ready_s and part.pid for part in self._parts),
            "parts": {
                part.name: {
                    "pid": part.pid,
                    "port": part.port,
                    "restarts": part.restarts,
                    "last_end": part.last_end,
                    "last_end_at": part.last_end_at,
                }
                for part in self._parts
            },
        }
        with open(self._record + ".part", "w", encoding="utf-8") as file:
            json.dump(facts, file)
        os.replace(self._record + ".part", self._record)


def say(words: str) -> None:
    """A line in the form of the server's own log."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    text = f"{stamp},{int(now * 1000) % 1000:03d} INFO supervisor: {words}\n"
    os.write(2, text.encode("utf-8", "replace"))


def hold(state: str) -> int:
    """The lock of this state folder's supervisor, ours for life; 0 when somebody has it.

    Who looks whether it is held takes it for a moment, hence the patience.
    """
    import fcntl

    lock = os.open(os.path.join(state, "run", "supervisor.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    deadline_s = time.monotonic() + LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() > deadline_s:
                return 0
            time.sleep(LOOK_EVERY_S)
        else:
            os.ftruncate(lock, 0)
            os.write(lock, str(os.getpid()).encode())
            return lock


def main() -> int:
    """`supervisor.py STATE`, the parts as JSON on the standard input."""
    state = sys.argv[1]
    parts = [Part(**described) for described in json.load(sys.stdin)]
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if not hold(state):
        print(f"error: a platform already runs on {state}", file=sys.stderr)
        return EXIT_ALREADY
    return Supervisor(state, parts).run()


if __name__ == "__main__":
    sys.exit(main())
