"""The little process between the platform and a user's program.

It promises that how a program ended is on disk even if the platform was not there to see it:
it starts the program, appends what happens to the attempt's status file, hands TERM on, buries
orphans, and leaves no process behind. `spawning` starts it, alone or as process 1 of a sandbox;
`attempts.read_status` reads what it wrote. It never talks to the platform otherwise, and outlives
it.

It is run as a script by a bare interpreter (`-I -S`), once per replica, so it imports built-in
modules only: `os`, `signal` and `ctypes` would cost as much again as the whole start.

The program gets none of what the shim holds: no file descriptor but 0, 1 and 2, no capability in
any set, and the account's uid. In a sandbox the shim gives its own privileges up as well. The two
may have the same uid (a platform that is not root has no other), so the shim is not dumpable:
nobody but root opens its descriptors and memory through /proc or traces it.
"""

import _signal  # type: ignore[import-not-found,unused-ignore]
import posix
import sys
import time

TYPE_CHECKING = False  # not typing's: importing it would cost more than the rest
if TYPE_CHECKING:
    from typing import Any

# File descriptors as `spawning` arranges them. The status file is also standard error, so that
# the complaints of bubblewrap and of the interpreter itself land there too.
STATUS_FD = 2
PLATFORM_FD = 3  # a socket: the platform says when to go, we say what happens
LOG_FD = 4
PLAN_FD = 5
FREE_FD = 6  # from here on nothing is the shim's

# Single letters, so that a plan stays readable in a debugger and needs no parser here.
FLAG_SUBREAPER = b"r"  # no PID namespace: orphans must come to us to be found

PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
CAPSET_VERSION_3 = b"\x22\x05\x08\x20\0\0\0\0"
# The same numbers on every architecture.
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_RESTRICT_SELF = 446
# struct landlock_ruleset_attr: no file, no port, scoped = LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
ABSTRACT_SOCKETS_SCOPED = b"\0" * 16 + b"\1" + b"\0" * 7

OUTPUTS = ("/dev/stdout", "/dev/stderr")
WAITED = frozenset(
    (
        _signal.SIGCHLD,
        _signal.SIGTERM,
        _signal.SIGINT,
        _signal.SIGHUP,
        _signal.SIGUSR1,
        _signal.SIGIO,
    )
)


def record(*words: object) -> None:
    """Append one line to the status file, then tell the platform if it is there."""
    line = (" ".join(map(str, words)) + "\n").encode("utf-8", "replace")
    posix.write(STATUS_FD, line)
    try:
        posix.write(PLATFORM_FD, line)
    except OSError:
        pass  # nobody listens; the file is what counts


def read_all(fd: int) -> bytes:
    parts = []
    while part := posix.read(fd, 1 << 20):
        parts.append(part)
    return b"".join(parts)


class Plan:
    """What to start. NUL-separated; the order is `spawning.encode_plan`'s."""

    def __init__(self, data: bytes) -> None:
        fields = data.split(b"\0")
        flags, uid, data_limit, machine_started_at, entrances = fields[:5]
        self.subreaper = FLAG_SUBREAPER in flags
        self.uid = int(uid) if uid else None
        self.data_limit_bytes = int(data_limit)
        self.machine_started_at = float(machine_started_at)
        self.entrances = [int(fd) for fd in entrances.split()]
        self.workdir, self.entry = fields[5:7]
        self.env = dict(pair.split(b"=", 1) for pair in fields[7:] if pair)

    def now(self) -> float:
        """The platform's steady clock: setting the machine's makes no job older or younger."""
        return self.machine_started_at + time.clock_gettime(time.CLOCK_BOOTTIME)


class Kernel:
    """The system calls Python does not offer, by the quickest way to them."""

    _prctl: "Any"
    _capset: "Any"
    _syscall: "Any"
    _call: "Any"

    def __init__(self) -> None:
        try:
            import _ctypes

            libc = _ctypes.dlopen(None, 0)  # type: ignore[arg-type,unused-ignore]
            self._prctl = _ctypes.dlsym(libc, "prctl")
            self._capset = _ctypes.dlsym(libc, "capset")
            self._syscall = _ctypes.dlsym(libc, "syscall")
            self._call = _ctypes.call_function
        except (ImportError, AttributeError):  # another Python hides them elsewhere
            import ctypes

            library = ctypes.CDLL(None)
            self._prctl, self._capset = library.prctl, library.capset
            self._syscall = library.syscall
            self._call = lambda function, arguments: function(*arguments)

    def prctl(self, option: int, value: int) -> bool:
        return bool(self._call(self._prctl, (option, value, 0, 0, 0)) == 0)

    def drop_capabilities(self) -> None:
        self._call(self._capset, (CAPSET_VERSION_3, b"\0" * 24))

    def close_abstract_sockets(self) -> None:
        """Reach no abstract socket but those made in here: a desktop's X server has one, and the
        network is the machine's. Kernels before 6.12 refuse; `Processes.notes` says so."""
        size = len(ABSTRACT_SOCKETS_SCOPED)
        ruleset = self._call(
            self._syscall, (SYS_LANDLOCK_CREATE_RULESET, ABSTRACT_SOCKETS_SCOPED, size, 0)
        )
        if ruleset >= 0:
            self._call(self._syscall, (SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0))
            posix.close(ruleset)


def drop_privileges(kernel: Kernel, uid: "int | None") -> None:
    """End as the account's uid, with no capability and no way to get one."""
    kernel.prctl(PR_SET_NO_NEW_PRIVS, 1)
    capability = 0
    while capability < 64 and kernel.prctl(PR_CAPBSET_DROP, capability):
        capability += 1
    if uid is not None and uid != posix.getuid():
        posix.setgroups([])
        posix.setresgid(uid, uid, uid)
        posix.setresuid(uid, uid, uid)
    kernel.drop_capabilities()


def enter_groups(entrances: "list[int]") -> None:
    """Put ourselves where we are held to our limits, and with us whatever we start.

    A thread that moves itself costs the kernel nothing; were the platform to move us, it would
    wait for every core to have done something else, some 12 ms.
    """
    try:
        for fd in entrances:
            posix.write(fd, b"0")
            posix.close(fd)
    except OSError as error:
        record("startfail", f"cannot enter its cgroups: {error.strerror}")
        posix._exit(70)


def limit_data(size_bytes: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, size_bytes))


def become_program(kernel: Kernel, plan: Plan, failure_fd: int) -> None:
    """In the child: take the program's place, or say on `failure_fd` why not."""
    doing = "cannot start"
    try:
        posix.setsid()
        posix.dup2(LOG_FD, 1)
        posix.dup2(LOG_FD, 2)
        if plan.data_limit_bytes:
            doing = "cannot limit its memory"
            limit_data(plan.data_limit_bytes)
        if plan.uid is not None or not plan.subreaper:
            # Else there is neither an account nor a sandbox: the program is as free as we are.
            doing = f"cannot become uid {plan.uid}"
            drop_privileges(kernel, plan.uid)
        if not plan.subreaper:
            kernel.close_abstract_sockets()
        doing = "cannot enter its working directory " + plan.workdir.decode("utf-8", "replace")
        posix.chdir(plan.workdir)
        posix.umask(0o022)
        _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
        _signal.signal(_signal.SIGXFSZ, _signal.SIG_DFL)
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, WAITED)
        posix.dup2(failure_fd, 3, False)
        posix.closerange(4, 1024)
        failure_fd = 3
        doing = "cannot execute /bin/sh"
        posix.execve("/bin/sh", [b"sh", b"-c", plan.entry], plan.env)
    except OSError as error:
        posix.write(failure_fd, f"{doing}: {error.strerror}".encode("utf-8", "replace"))
    finally:
        posix._exit(127)


def children_by_parent() -> "dict[int, list[int]]":
    tree: dict[int, list[int]] = {}
    for name in posix.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fd = posix.open(f"/proc/{name}/stat", posix.O_RDONLY)
        except OSError:
            continue
        try:
            stat = posix.read(fd, 1024)
        except OSError:
            continue
        finally:
            posix.close(fd)
        parent = int(stat.rpartition(b")")[2].split()[1])
        tree.setdefault(parent, []).append(int(name))
    return tree


def kill_descendants() -> None:
    """One pass. Stopping first keeps a forking program from outrunning us."""
    tree = children_by_parent()
    found: list[int] = []
    todo = [posix.getpid()]
    while todo:
        below = tree.get(todo.pop(), ())
        found += below
        todo += below
    for signal in (_signal.SIGSTOP, _signal.SIGKILL):
        for pid in found:
            try:
                posix.kill(pid, signal)
            except OSError:
                pass


class Relay:
    """Makes `echo lost > /dev/stderr` work in a sandbox.

    There these names would open the log file anew, which is not the program's to open, and were
    it, `>` would empty it. As pipes that we copy to the log they behave as in a container. What
    a program writes to the outputs it was given does not pass here.
    """

    def __init__(self) -> None:
        import fcntl

        self.pipes: list[int] = []
        for path in OUTPUTS:
            try:
                posix.unlink(path)
                posix.mkfifo(path)
                posix.chmod(path, 0o666)
                fd = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
                # A writer of our own, so that the pipe does not end when others close it. Not
                # one descriptor for both: to a writer each reading is news, and a SIGIO.
                posix.open(path, posix.O_WRONLY | posix.O_NONBLOCK | posix.O_CLOEXEC)
            except OSError:
                continue  # the names then mean what they always do
            fcntl.fcntl(fd, fcntl.F_SETOWN, posix.getpid())
            fcntl.fcntl(fd, fcntl.F_SETFL, posix.O_NONBLOCK | fcntl.FASYNC)  # SIGIO
            self.pipes.append(fd)

    def copy(self) -> None:
        """All that is there now."""
        for fd in self.pipes:
            try:
                while True:
                    posix.write(LOG_FD, posix.read(fd, 1 << 16))
            except OSError:
                pass  # nothing more


class Watch:
    """Waits for the program and everything it left, and passes signals on."""

    def __init__(self, plan: Plan, program: int, relay: "Relay | None") -> None:
        self.plan = plan
        self.program = program
        self.relay = relay
        self.has_namespace = relay is not None
        self.has_ended = False
        self.stopping = False

    def until_all_is_over(self) -> None:
        while self.reap():
            if self.relay is not None:
                self.relay.copy()
            if self.has_ended and not (self.stopping and self.group_is_alive()):
                if self.has_namespace:
                    return  # the kernel ends a namespace together with its process 1
                kill_descendants()
            self.hand_on(_signal.sigwait(WAITED))

    def reap(self) -> bool:
        """Bury the dead; False when no child is left."""
        while True:
            try:
                pid, status = posix.waitpid(-1, posix.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.program:
                self.has_ended = True
                if self.relay is not None:
                    self.relay.copy()  # whoever hears of the end reads the log next
                record("ended", status, self.plan.now())

    def group_is_alive(self) -> bool:
        """`sh` may die of TERM while the program it started still saves its work."""
        try:
            posix.killpg(self.program, 0)
        except OSError:
            return False
        return True

    def hand_on(self, signal: int) -> None:
        if signal == _signal.SIGUSR1:  # the platform's patience is over
            self.stopping = False
            kill_descendants()
        elif signal not in (_signal.SIGCHLD, _signal.SIGIO):
            self.stopping = self.stopping or signal == _signal.SIGTERM
            try:
                posix.killpg(self.program, signal)
            except OSError:
                pass


def main() -> None:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, WAITED)
    posix.chdir("/")
    plan = Plan(read_all(PLAN_FD))
    kernel = Kernel()
    if plan.subreaper:
        kernel.prctl(PR_SET_CHILD_SUBREAPER, 1)
    if not posix.read(PLATFORM_FD, 1):
        posix._exit(0)  # the platform died before it wrote down who we are: we never were
    enter_groups(plan.entrances)
    # Not sooner: until it says GO, the platform finds us by our environment, and it need not be
    # root. Not later: from the fork on there is somebody to keep out.
    kernel.prctl(PR_SET_DUMPABLE, 0)
    relay = None if plan.subreaper else Relay()
    record("ready", plan.now())
    failure, failure_end = posix.pipe2(posix.O_CLOEXEC)  # type: ignore[attr-defined,unused-ignore]
    program = posix.fork()
    if program == 0:
        become_program(kernel, plan, failure_end)
    posix.close(failure_end)
    posix.close(PLAN_FD)
    if not plan.subreaper:
        # Without a namespace a program could kill a shim of its own uid and hide from us.
        drop_privileges(kernel, plan.uid)
    reason = read_all(failure)
    if reason:
        record("startfail", reason.decode("utf-8", "replace").replace("\n", " "))
    else:
        record("started", plan.now())
    watch = Watch(plan, program, relay)
    watch.until_all_is_over()
    posix._exit(0)


if __name__ == "__main__":
    try:
        main()
    except BaseException as error:
        record("startfail", f"the shim failed: {type(error).__name__}: {error}")
        sys.exit(70)
