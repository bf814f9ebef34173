"""The labels, annotations and finalizers that we write on objects of a cluster, and read back.

The operator and the server's engine for Kubernetes meet in these words and nowhere else: the
engine makes a custom resource and gives orders on it, the operator makes pods of it.
"""

from __future__ import annotations

# --- on everything the operator makes ------------------------------------------------------------

# Labels of the first operator, for scripts that select by them.
POD_LABEL, ROLE_LABEL = "paddle-res-name", "paddle-res-type"
ROLE_ANNOTATION = "paddle-resource"
# Ours. The first also tells the operator's own objects from all others; two jobs of different
# kinds may have the same name, so the second goes with it.
JOB_LABEL = "paddlepaddle.org/job"
KIND_LABEL = "paddlepaddle.org/kind"
INDEX_LABEL = "paddlepaddle.org/index"
ATTEMPT_LABEL = "paddlepaddle.org/attempt"
STOPPED_ANNOTATION = "paddlepaddle.org/stopped"
NUDGED_ANNOTATION = "paddlepaddle.org/nudged"  # when the kubelet was last told to look again
PROBED_ANNOTATION = "paddlepaddle.org/probed"  # the readiness probe is ours
# The lines of the files /trainer_id and /trainer_count of a TrainingJob's pod.
TRAINER_ID_ANNOTATION = "paddlepaddle.org/trainer-id"
TRAINER_COUNT_ANNOTATION = "paddlepaddle.org/trainer-count"
# Keeps a pod until its log is stored. Only where the job has ARCHIVE_ANNOTATION; the archiver
# takes it away, and the operator does after a while if nobody has.
LOG_FINALIZER = "paddlepaddle.org/log"

# --- on a custom resource made by the server -----------------------------------------------------

JOB_ID_LABEL = "paddlepaddle.org/job-id"  # the platform's own
RUN_LABEL = "paddlepaddle.org/run"
ACCOUNT_ANNOTATION = "paddlepaddle.org/account"  # a user's name as typed; on namespaces too
JOB_NAME_ANNOTATION = "paddlepaddle.org/job-name"  # as typed
SUBMITTED_ANNOTATION = "paddlepaddle.org/submitted-at"  # unix seconds; a re-run's own
ARCHIVE_ANNOTATION = "paddlepaddle.org/archive"  # "true": logs are stored, see LOG_FINALIZER

# --- orders on a custom resource -----------------------------------------------------------------

# Stop the job, for this reason; the object stays, with its evidence.
CANCEL_ANNOTATION = "paddlepaddle.org/cancel"
# A JSON list of {role, index, attempt, host, at}: replicas that are to run on other nodes.
MOVES_ANNOTATION = "paddlepaddle.org/moves"
# "true" or "false": whether our runtime is put in front of commands; see `controller.in_front`.
RUNTIME_ANNOTATION = "paddlepaddle.org/runtime"

# --- on events -----------------------------------------------------------------------------------

REPLICA_ANNOTATION = "paddlepaddle.org/replica"  # whom it is about: trainer-0

# --- on namespaces -------------------------------------------------------------------------------

ACCOUNT_ID_ANNOTATION = "paddlepaddle.org/account-id"  # the platform's number of the account

# A JSON object of cpu, memory, gpu and replicas in quantities of Kubernetes.
QUOTA_ANNOTATION = "paddlepaddle.org/quota"
