"""What a training process sees: the environment and the files of one replica.

`environment(job, replica)` gives every variable any generation of PaddleCloud promised, what
Paddle itself asks for, and the torch and JAX names of the same facts; `files(job, replica)` the
files old programs read; `termination_message(code)` the words for an exit code. Engines call
these when they start a replica. Facts in, values out: nothing here reads the real environment.

`VARIABLES` is the contract: one row per variable, with the generation that introduced it
(A 2017-18, B job client, C public trial, O operator, P Paddle itself, T torch, J JAX) and its
meaning. A row whose value is None for a replica is left out of its environment.

Ranks are the fixed indices of the replicas, never drawn from sorted addresses as generation A
did, so a restarted replica keeps its id. Three variables are left out on purpose:
PADDLE_MASTER (Paddle's launcher would ignore the user's --master; its processes find the first
trainer endpoint without it), PADDLE_JOB_ID and PADDLE_NNODES (the launcher takes them as orders).

Python 3.6 syntax and the standard library only: old training images import this file.
"""

from typing import Callable, Dict, Mapping, NamedTuple, Optional, Sequence

SINGLE, COLLECTIVE, PS, HETER_MODE = "single", "collective", "ps", "heter"
TRAINER, PSERVER, HETER, MASTER = "trainer", "pserver", "heter", "master"

# The operator said HETER, which Paddle refuses.
ROLE_WORDS = {
    TRAINER: "TRAINER",
    PSERVER: "PSERVER",
    HETER: "HETER_TRAINER",
    MASTER: "MASTER",
}

DEFAULT_PORTS_NUM = 20  # ports each replica has for itself, from its base port upward
LEGACY_PORT = 7164  # where parameter servers of the v1 and v2 API listen
GPU_LIBRARIES = "/usr/local/nvidia/lib64"

# Linux refuses to start a program with one longer `NAME=value` than 128 KiB.
MAX_LIST_BYTES = 120 * 1024


class Peer(NamedTuple):
    """Where one replica is reached: ports `port` to `port + ports_num - 1` are its own."""

    address: str
    port: int
    ports_num: int = DEFAULT_PORTS_NUM

    @property
    def endpoint(self) -> str:
        return self.at(0)

    def at(self, offset: int) -> str:
        host = "[{}]".format(self.address) if ":" in self.address else self.address
        return "{}:{}".format(host, self.port + offset)

    def from_end(self, back: int) -> int:
        """The offset of the `back`-th port from the end: away from the ports a program uses."""
        return max(self.ports_num - back, 0)


# Each service has a port of its own, since several may run beside each other in one process:
# Paddle's launcher listens on the first trainer's base port while its child is rank 0.
_MASTER_PORT, _GLOO_PORT, _JAX_PORT = 1, 2, 3


class JobFacts(NamedTuple):
    """What all replicas of a run have in common. Lists of peers are in order of index."""

    job_id: str
    name: str
    mode: str  # single, collective, ps, heter
    datacenter: str
    user: str
    trainers: Sequence[Peer]
    pservers: Sequence[Peer] = ()
    heters: Sequence[Peer] = ()
    master: Optional[Peer] = None  # the task master of a fault-tolerant job
    namespace: str = ""
    entry: str = ""
    topology: str = ""
    package: str = ""  # the working directory
    output: str = ""  # a directory that is kept
    log_dir: str = ""  # where programs may put logs of their own; empty: in `output`
    passes: int = 1
    cpu_milli: int = 1000  # per trainer
    gpus: int = 0  # per trainer
    fault_tolerant: bool = False
    with_gloo: int = 0  # 0 off, 1 trainers, 2 trainers and servers; parameter servers only
    elastic_server: str = ""  # host:port of the etcd of Paddle's own elastic launcher
    elastic_timeout_s: int = 60
    v2_ports: Sequence[int] = (LEGACY_PORT, 1, 1)  # of v1/v2 servers: first, dense, sparse


class ReplicaFacts(NamedTuple):
    role: str  # trainer, pserver, heter, master
    index: int  # type: ignore[assignment]  # 0-based, within the role; hides tuple.index


class _View(NamedTuple):
    """A job seen by one of its replicas: what the rows of the table are functions of."""

    job: JobFacts
    replica: ReplicaFacts
    inherited: Mapping[str, str]

    @property
    def me(self) -> Peer:
        if self.replica.role == MASTER:
            if self.job.master is None:
                raise ValueError("a master replica in a job without a master")
            return self.job.master
        peers = {
            TRAINER: self.job.trainers,
            PSERVER: self.job.pservers,
            HETER: self.job.heters,
        }[self.replica.role]
        return peers[self.replica.index]

    @property
    def rank(self) -> str:
        return str(self.replica.index)

    @property
    def trainer_count(self) -> str:
        return str(len(self.job.trainers))

    @property
    def first(self) -> Peer:
        return self.job.trainers[0]

    @property
    def master_port(self) -> str:
        return str(self.first.port + self.first.from_end(_MASTER_PORT))

    @property
    def jax_coordinator(self) -> str:
        return self.first.at(self.first.from_end(_JAX_PORT))

    @property
    def full_name(self) -> str:
        return "{}-{}".format(self.job.namespace, self.job.name)

    @property
    def elastic_timeout(self) -> str:
        return str(self.job.elastic_timeout_s)

    @property
    def heter_device(self) -> str:
        return "gpu" if self.job.gpus else "cpu"


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _text(value: str) -> Optional[str]:
    return value or None


def _hosts(peers: Sequence[Peer]) -> Optional[str]:
    return _text(",".join(peer.address for peer in peers))


def _endpoints(peers: Sequence[Peer]) -> Optional[str]:
    return _text(",".join(peer.endpoint for peer in peers))


def _threads_per_trainer(view: _View) -> str:
    cores = -(-view.job.cpu_milli // 1000)  # rounded up
    return str(view.job.gpus if view.job.gpus > 0 else max(cores, 1))


def _process_endpoints(view: _View) -> Optional[str]:
    """Every port of every trainer, node by node; Paddle checks that there are exactly as many.

    Left out where it would be too long to start a program with: Paddle then counts the ports
    itself, from PADDLE_TRAINERS, PADDLE_PORT and TRAINER_PORTS_NUM.
    """
    trainers = view.job.trainers
    if any(peer.ports_num != view.me.ports_num for peer in trainers):
        return None
    text = ",".join(peer.at(i) for peer in trainers for i in range(peer.ports_num))
    return text if len(text) <= MAX_LIST_BYTES else None


def _v2_port(place: int) -> Callable[[_View], str]:
    return lambda view: str(view.job.v2_ports[place])


def _library_path(view: _View) -> Optional[str]:
    """The driver libraries come last: an image's own choice is kept (generation A replaced it)."""
    known = [part for part in view.inherited.get("LD_LIBRARY_PATH", "").split(":") if part]
    if view.job.gpus and GPU_LIBRARIES not in known:
        known.append(GPU_LIBRARIES)
    return _text(":".join(known))


def _python_path(view: _View) -> Optional[str]:
    known = [part for part in view.inherited.get("PYTHONPATH", "").split(":") if part]
    package = view.job.package
    return _text(":".join([package] * bool(package) + [p for p in known if p != package]))


def _master_host(view: _View) -> Optional[str]:
    return view.job.master.address if view.job.master else None


def _backend(view: _View) -> Optional[str]:
    """Without it a CPU trainer dies in init_parallel_env; GPU trainers choose for themselves."""
    is_cpu_collective = view.job.mode == COLLECTIVE and view.job.gpus == 0
    return "gloo" if is_cpu_collective else None


def _selected_gpu(view: _View) -> Optional[str]:
    """NCCL asks for it when a program runs without the launcher.

    With more cards the launcher is needed (a process per card), and Paddle's complaint is right.
    """
    return "0" if view.job.mode == COLLECTIVE and view.job.gpus == 1 else None


def _gloo(view: _View, value: str) -> Optional[str]:
    """A late joiner hangs in gloo's barriers, so they exist only if asked for."""
    return value if view.job.with_gloo and view.job.pservers else None


def _gloo_endpoint(view: _View) -> Optional[str]:
    if not view.job.pservers:
        return None
    server = view.job.pservers[0]
    return _gloo(view, server.at(server.from_end(_GLOO_PORT)))


def _elastic(view: _View, value: str) -> Optional[str]:
    return value if view.job.elastic_server else None


def _ranked(view: _View, value: str) -> Optional[str]:
    """For trainers alone: torch and JAX would take a parameter server for one more rank."""
    return value if view.replica.role == TRAINER else None


def _local(view: _View, value: str) -> Optional[str]:
    """LOCAL_RANK alone makes some libraries start a process group: not in a single program."""
    return _ranked(view, value) if len(view.job.trainers) > 1 else None


def _stage(view: _View, trainer: str, heter: str) -> Optional[str]:
    """Heterogeneous training has two stages: trainers, then heter workers."""
    if not view.job.heters:
        return None
    return {TRAINER: trainer, HETER: heter}.get(view.replica.role)


def _heter_workers(view: _View) -> Optional[str]:
    return _endpoints(view.job.heters)


def _next_stage(view: _View) -> Optional[str]:
    return _stage(view, _endpoints(view.job.heters) or "", "")


def _previous_stage(view: _View) -> Optional[str]:
    return _stage(view, "", _endpoints(view.job.trainers) or "")


def _stage_sizes(view: _View) -> Optional[str]:
    sizes = str([len(view.job.trainers), len(view.job.heters)])
    return _stage(view, sizes, sizes)


_JOB_TYPES = {PS: "PSERVER", HETER_MODE: "PSERVER", COLLECTIVE: "NCCL2"}


class Variable(NamedTuple):
    """One row of the contract."""

    name: str
    since: str
    meaning: str
    value: Callable[[_View], Optional[str]]


# fmt: off
VARIABLES = (
    # Set by the server of generation A.
    Variable("PADDLE_JOB_NAME", "A", "the job's name", lambda v: v.job.name),
    Variable("TRAINERS", "A", "number of trainers", lambda v: v.trainer_count),
    Variable("PSERVERS", "A", "number of servers", lambda v: str(len(v.job.pservers))),
    Variable("ENTRY", "A", "start command", lambda v: _text(v.job.entry)),
    Variable("TOPOLOGY", "A", "v1 configuration file", lambda v: _text(v.job.topology)),
    Variable("TRAINER_PACKAGE", "A", "the package directory", lambda v: _text(v.job.package)),
    Variable("PADDLE_INIT_PORT", "A", "v1/v2 server port", _v2_port(0)),
    Variable("PADDLE_INIT_PORTS_NUM", "A", "v1/v2 dense ports", _v2_port(1)),
    Variable("PADDLE_INIT_PORTS_NUM_FOR_SPARSE", "A", "v1/v2 sparse ports", _v2_port(2)),
    Variable("PADDLE_INIT_TRAINER_COUNT", "A", "threads per trainer", _threads_per_trainer),
    Variable("PADDLE_INIT_NUM_GRADIENT_SERVERS", "A", "trainers", lambda v: v.trainer_count),
    Variable("PADDLE_INIT_NUM_PASSES", "A", "passes", lambda v: str(v.job.passes)),
    Variable("PADDLE_INIT_USE_GPU", "A", "1 with cards", lambda v: _flag(v.job.gpus > 0)),
    Variable("LD_LIBRARY_PATH", "A", "driver libraries appended, with cards", _library_path),
    Variable("NAMESPACE", "A", "the user's namespace", lambda v: _text(v.job.namespace)),
    Variable("PADDLE_CLOUD_CURRENT_DATACENTER", "A", "the cluster", lambda v: v.job.datacenter),
    Variable("PADDLE_CLOUD_USERNAME", "A", "the user", lambda v: v.job.user),
    # Set by the start script of generation A.
    Variable("PADDLE_INIT_PSERVERS", "A", "server hosts", lambda v: _hosts(v.job.pservers)),
    Variable("PADDLE_INIT_TRAINER_ID", "A", "index in the role", lambda v: v.rank),
    Variable("MASTER_IP", "A", "task master of a fault-tolerant job", _master_host),
    Variable("ETCD_IP", "A", "etcd, which runs beside the task master", _master_host),
    Variable("PADDLE_PSERVER_IPS", "A", "server hosts", lambda v: _hosts(v.job.pservers)),
    Variable("PADDLE_TRAINER_IPS", "A", "trainer hosts", lambda v: _hosts(v.job.trainers)),
    Variable("PYTHONPATH", "A", "the package directory, put first", _python_path),
    Variable("PADDLE_TRAINING_ROLE", "A", "the role's word", lambda v: ROLE_WORDS[v.replica.role]),
    # Generation B; Paddle reads most of them to this day.
    Variable("TRAINING_ROLE", "B", "the role's word", lambda v: ROLE_WORDS[v.replica.role]),
    Variable("PADDLE_TRAINER_ID", "B", "index in the role", lambda v: v.rank),
    Variable("PADDLE_TRAINERS_NUM", "B", "number of trainers", lambda v: v.trainer_count),
    # A wrote counts into these two; B, O and Paddle want hosts. Counts: TRAINERS and PSERVERS.
    Variable("PADDLE_TRAINERS", "B", "trainer hosts", lambda v: _hosts(v.job.trainers)),
    Variable("PADDLE_PSERVERS", "B", "server hosts", lambda v: _hosts(v.job.pservers)),
    Variable("PADDLE_TRAINER_ENDPOINTS", "B", "by rank", lambda v: _endpoints(v.job.trainers)),
    Variable("PADDLE_CURRENT_ENDPOINT", "B", "own host:port", lambda v: v.me.endpoint),
    # A server looks for POD_IP:PADDLE_PORT in this list and stops if it is not there.
    Variable("PADDLE_PSERVERS_IP_PORT_LIST", "B", "servers", lambda v: _endpoints(v.job.pservers)),
    Variable("POD_IP", "B", "own address", lambda v: v.me.address),
    Variable("PADDLE_PORT", "B", "own first port", lambda v: str(v.me.port)),
    Variable("TRAINER_PORTS_NUM", "B", "number of own ports", lambda v: str(v.me.ports_num)),
    Variable("DISTRIBUTED_TRAINER_ENDPOINTS", "B", "every process", _process_endpoints),
    Variable("PADDLE_USE_GPU", "B", "1 with cards", lambda v: _flag(v.job.gpus > 0)),
    Variable("PADDLE_USE_CUDA", "B", "1 with cards", lambda v: _flag(v.job.gpus > 0)),
    Variable("PADDLE_IS_LOCAL", "B", "1 if single, else 0", lambda v: _flag(v.job.mode == SINGLE)),
    Variable("DISTRIBUTE_JOB_TYPE", "B", "PSERVER or NCCL2", lambda v: _JOB_TYPES.get(v.job.mode)),
    # Generation C.
    Variable("JOB_ID", "C", "the job's id", lambda v: v.job.job_id),
    Variable("OUTPUT_PATH", "C", "a kept directory", lambda v: _text(v.job.output)),
    Variable("LOCAL_LOG_PATH", "C", "for logs", lambda v: _text(v.job.log_dir or v.job.output)),
    Variable("LOCAL_MOUNT_PATH", "C", "the package directory", lambda v: _text(v.job.package)),
    # Generation O.
    Variable("PADDLE_HETER_ENDPOINTS", "O", "heter workers", lambda v: _endpoints(v.job.heters)),
    Variable("PADDLE_WITH_GLOO", "O", "1 or 2", lambda v: _gloo(v, str(v.job.with_gloo))),
    Variable("PADDLE_GLOO_RENDEZVOUS", "O", "3: by HTTP", lambda v: _gloo(v, "3")),
    Variable("PADDLE_GLOO_HTTP_ENDPOINT", "O", "a port of server 0 for gloo", _gloo_endpoint),
    Variable("PADDLE_ELASTIC_JOB_ID", "O", "namespace-name", lambda v: _elastic(v, v.full_name)),
    Variable("PADDLE_ELASTIC_NP", "O", "trainers", lambda v: _elastic(v, v.trainer_count)),
    Variable("PADDLE_ELASTIC_TIMEOUT", "O", "seconds", lambda v: _elastic(v, v.elastic_timeout)),
    Variable("PADDLE_ELASTIC_SERVER", "O", "etcd", lambda v: _elastic(v, v.job.elastic_server)),
    # What Paddle needs beyond that when a program runs without its launcher.
    Variable("PADDLE_DISTRI_BACKEND", "P", "gloo for CPU collective training", _backend),
    Variable("FLAGS_selected_gpus", "P", "the one card of a collective trainer", _selected_gpu),
    Variable("PADDLE_ALL_HETER_TRAINER_IP_PORT_LIST", "P", "stage 2", _heter_workers),
    Variable("PADDLE_NEXT_HETER_TRAINER_IP_PORT_LIST", "P", "next stage", _next_stage),
    Variable("PADDLE_PREVIOUS_HETER_TRAINER_IP_PORT_LIST", "P", "stage before", _previous_stage),
    Variable("STAGE_ID", "P", "1 trainers, 2 heter workers", lambda v: _stage(v, "1", "2")),
    Variable("STAGE_NUM", "P", "number of stages", lambda v: _stage(v, "2", "2")),
    Variable("PADDLE_STAGE_TRAINERS_NUM", "P", "workers per stage", _stage_sizes),
    Variable("HETER_DEVICE_TYPE", "P", "cpu or gpu", lambda v: _stage(v, "cpu", v.heter_device)),
    # The same facts for torch and for JAX.
    Variable("MASTER_ADDR", "T", "host of rank 0", lambda v: _ranked(v, v.first.address)),
    Variable("MASTER_PORT", "T", "a free port there", lambda v: _ranked(v, v.master_port)),
    Variable("RANK", "T", "rank", lambda v: _ranked(v, v.rank)),
    Variable("WORLD_SIZE", "T", "number of ranks", lambda v: _ranked(v, v.trainer_count)),
    Variable("LOCAL_RANK", "T", "rank on this node", lambda v: _local(v, "0")),
    Variable("LOCAL_WORLD_SIZE", "T", "ranks on this node", lambda v: _local(v, "1")),
    Variable("JAX_COORDINATOR_ADDRESS", "J", "at rank 0", lambda v: _ranked(v, v.jax_coordinator)),
    Variable("JAX_NUM_PROCESSES", "J", "number of ranks", lambda v: _ranked(v, v.trainer_count)),
    Variable("JAX_PROCESS_ID", "J", "rank", lambda v: _ranked(v, v.rank)),
)
# fmt: on


def environment(
    job: JobFacts, replica: ReplicaFacts, inherited: Optional[Mapping[str, str]] = None
) -> Dict[str, str]:
    """The variables of one replica.

    `inherited` is what the replica would have anyway (the runtime's and the user's variables):
    PYTHONPATH and LD_LIBRARY_PATH extend it instead of replacing it. It is not copied otherwise.
    """
    view = _View(job, replica, inherited or {})
    found = ((row.name, row.value(view)) for row in VARIABLES)
    return {name: value for name, value in found if value is not None}


def files(job: JobFacts, replica: ReplicaFacts) -> Dict[str, str]:
    """Path -> content of the files generation A put into a pod.

    Programs read one line and cut its newline off. Servers run the same program here, so they
    have the files too: a program may read them before it looks at its role.
    """
    return {
        "/trainer_id": "{}\n".format(replica.index),
        "/trainer_count": "{}\n".format(len(job.trainers)),
    }


_TERMINATION_MESSAGES = {
    1: "General Error",
    134: "Program Abort",
    136: "Error Arithmetic Operation(Floating Point Exception)",
    139: "Segmentation Fault",
}


def termination_message(code: int) -> str:
    """The reason `get workers` shows for an exit code; empty where there is none to give."""
    return _TERMINATION_MESSAGES.get(code, "")
