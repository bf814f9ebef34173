"""The paths of the server, written once: the server routes by them and the SDK calls them.

Nothing but text and two tiny functions, so that the command line may import it for free. The
JSON that travels on these paths is described in `wire.shapes`.
"""

from __future__ import annotations

HEALTH = "/healthz"
LOGIN = "/api-token-auth/"

V2 = "/api/v2"
STATUS = V2 + "/status"
WHOAMI = V2 + "/whoami"
PACKAGE = V2 + "/packages/{digest}"
JOBS = V2 + "/jobs"
JOB = V2 + "/jobs/{ref}"
JOB_RUNS = JOB + "/runs"
JOB_REPLICAS = JOB + "/replicas"
JOB_EVENTS = JOB + "/events"
JOB_LOGS = JOB + "/logs"
JOB_WAIT = JOB + "/wait"
JOB_EXPLAIN = JOB + "/explain"
JOB_CANCEL = JOB + "/cancel"
JOB_RERUN = JOB + "/rerun"
JOB_FAVORITE = JOB + "/favorite"
JOB_MOVE = JOB + "/move"
JOB_SCALE = JOB + "/scale"
CHANGES = V2 + "/changes"
CLUSTERS = V2 + "/clusters"
ALGORITHMS = V2 + "/algorithms"
ALGORITHM = V2 + "/algorithms/{ref}"
QUOTA = V2 + "/quota"
ACCOUNTS = V2 + "/accounts"
ACCOUNT_QUOTA = V2 + "/accounts/{name}/quota"
ACCOUNT_TOKEN = V2 + "/accounts/{name}/token"
ACCOUNT_CERT = V2 + "/accounts/{name}/cert"
ACCOUNT_CERTS = V2 + "/accounts/{name}/certs"
ACCOUNT_TOKENS = V2 + "/accounts/{name}/tokens"
ACCOUNT_KEYS = V2 + "/accounts/{name}/keys"
ACCOUNT_KEYS_ROTATE = V2 + "/accounts/{name}/keys/rotate"
ACCOUNT_REVOKE = V2 + "/accounts/{name}/revoke"
ACCOUNT_PASSWORD = V2 + "/accounts/{name}/password"
ACCOUNT_DISABLE = V2 + "/accounts/{name}/disable"
ACCOUNT_ENABLE = V2 + "/accounts/{name}/enable"
GROUPS = V2 + "/groups"
GROUP = V2 + "/groups/{name}"
GROUP_QUOTA = GROUP + "/quota"
GROUP_MEMBERS = GROUP + "/members"
GROUP_REMOVE_MEMBER = GROUP + "/members/remove"
REGISTRIES = V2 + "/registries"
REGISTRY = V2 + "/registries/{name}"
RUNTIMES = V2 + "/runtimes"
RUNTIME = V2 + "/runtimes/{name}"
OPENAPI = V2 + "/openapi.json"

# The file service; docs/guides/pfs-protocol.md.
PFS = V2 + "/pfs"
PFS_ENTRIES = PFS + "/entries"
PFS_ENTRY = PFS + "/entry"
PFS_CONTENT = PFS + "/content"
PFS_USAGE = PFS + "/usage"
PFS_DIRECTORIES = PFS + "/directories"
PFS_REMOVE = PFS + "/remove"
PFS_MOVE = PFS + "/move"
PFS_COPY = PFS + "/copy"
PFS_COMPARE = PFS + "/compare"
PFS_UPLOADS = PFS + "/uploads"
PFS_UPLOAD = PFS + "/uploads/{id}"
PFS_UPLOAD_TAKE = PFS_UPLOAD + "/take"
PFS_UPLOAD_REUSE = PFS_UPLOAD + "/reuse"
PFS_UPLOAD_COMMIT = PFS_UPLOAD + "/commit"
PFS_BATCH = PFS + "/batch"
PFS_FETCH = PFS + "/fetch"
PFS_SNAPSHOTS = PFS + "/snapshots"
PFS_SNAPSHOT = PFS + "/snapshots/{digest}"
PFS_BLOBS = PFS + "/blobs"

PUBLICATIONS = V2 + "/publications"
PUBLICATION = V2 + "/publications/{id}"
FILEPUB = "/filepub/"

V1_PFS = "/api/v1/pfs"
V1_PFS_FILES = V1_PFS + "/files"
V1_PFS_CHUNKS = V1_PFS + "/chunks"
V1_PFS_STORAGE_CHUNKS = V1_PFS + "/storage/chunks"

V1_JOBS = "/api/v1/jobs"
V1_PSERVERS = "/api/v1/pservers"
V1_WORKERS = "/api/v1/workers"
V1_LOGS = "/api/v1/logs"
V1_QUOTA = "/api/v1/quota"
V1_REGISTRY = "/api/v1/registry"
V1_TRAINING_JOBS = "/api/v1/trainingjobs"
V1_TOKEN2USER = "/api/v1/token2user"
V1_FILE = "/api/v1/file"
V1_FILELIST = "/api/v1/filelist"
V1_PUBLISH = "/api/v1/publish"

# The job service of the second generation.
JOB_SERVICE = "/v1/"
SERVICE_FILE = JOB_SERVICE + "file"
SERVICE_JOB = JOB_SERVICE + "job"
SERVICE_STATUS = JOB_SERVICE + "jobStatus"
SERVICE_GROUPS = JOB_SERVICE + "users_auth"
SERVICE_QUOTA = JOB_SERVICE + "quota"

# Headers with a meaning of their own.
IDEMPOTENCY_KEY = "Idempotency-Key"
IDEMPOTENCY_REPLAYED = "Idempotency-Replayed"
LOG_NEXT = "X-Log-Next"
LOG_SIZE = "X-Log-Size"
LOG_DROPPED = "X-Log-Dropped"
LOG_ENDED = "X-Log-Ended"
PFS_DIGEST = "PFS-Digest"  # of the whole file, where the server knows it
PFS_MTIME = "PFS-Mtime-Ns"
PFS_EXECUTABLE = "PFS-Executable"  # 1 or 0

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def _quote(segment: str) -> str:
    return "".join(chr(b) if b in _PLAIN else f"%{b:02X}" for b in segment.encode())


def fill(template: str, **segments: str) -> str:
    """`fill(JOB, ref="a b")` → `/api/v2/jobs/a%20b`; a segment cannot add a slash."""
    return template.format(**{name: _quote(value) for name, value in segments.items()})
