"""The peer of bench/ray_bench.py: submits jobs to Ray by its own SDK, one per line that it reads.

    python ray_jobs.py http://127.0.0.1:PORT

Prints `ready`, then for every line of its input, which is a job's command, one line of JSON: Unix
times of the call, of its answer, and of the moment the job was seen running, and the job's
output. Ray's SDK has nothing that waits for a status, so it is asked for it again and again. This
program runs in an environment of its own (bench/_environments.py makes it) and never imports
PaddleCloud.
"""

import json
import sys
import time

from ray.job_submission import JobStatus, JobSubmissionClient

ASK_EVERY_S = 0.002
ENDS_S = 60.0


def until(client, job, is_reached):
    """When the job's status was as wanted."""
    ends_s = time.time() + ENDS_S
    while time.time() < ends_s:
        status = client.get_job_status(job)
        if is_reached(status):
            return time.time()
        if status == JobStatus.FAILED:
            break
        time.sleep(ASK_EVERY_S)
    sys.exit(f"{job}: {client.get_job_info(job).message}")


def main():
    client = JobSubmissionClient(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        called_s = time.time()
        job = client.submit_job(entrypoint=line.strip())
        answered_s = time.time()
        seen_s = until(client, job, lambda status: status != JobStatus.PENDING)
        until(client, job, lambda status: status.is_terminal())
        row = {
            "called_s": called_s,
            "answered_s": answered_s,
            "seen_s": seen_s,
            "output": client.get_job_logs(job),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
