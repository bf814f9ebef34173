"""The program of the usage manual: each trainer takes its share of the training files.

`gen_train_list` stands here exactly as the manual prints it. It reads /trainer_id and
/trainer_count, looks for data under /pfs/<datacenter>/home/<user>/ and writes /train.list and
/test.list: paths that exist inside a job, where each replica has a root of its own.
"""

# ruff: noqa: UP015  (the manual's own lines stay as they are)

import glob
import gzip
import os
import sys

DATACENTER = os.environ.get("PADDLE_CLOUD_CURRENT_DATACENTER", "local")
USER = os.environ.get("PADDLE_CLOUD_USERNAME", "nobody")
HOME = f"/pfs/{DATACENTER}/home/{USER}"
TRAIN_FILE_PATTERN = HOME + "/user001_space/part-*.gz"
TEST_FILE_PATTERN = HOME + "/user001_space_test/part-*.gz"


# fmt: off
def gen_train_list(data_dir):
    # write "/train.list" and "/test.list" for each node
    trainer_id = -1
    trainer_count = -1
    with open("/trainer_id", "r") as f:
        trainer_id = int(f.readline()[:-1])
    with open("/trainer_count", "r") as f:
        trainer_count = int(f.readline()[:-1])

    train_file_list = glob.glob(TRAIN_FILE_PATTERN)
    train_file_list.sort()
    my_train_list = []
    for idx, f in enumerate(train_file_list):
        if idx % trainer_count == trainer_id:
            my_train_list.append(f)
    with open("/train.list", "w") as f:
        f.write('\n'.join(my_train_list))

    test_file_list = glob.glob(TEST_FILE_PATTERN)
    test_file_list.sort()
    my_test_list = []
    for idx, f in enumerate(test_file_list):
        if idx % trainer_count == trainer_id:
            my_test_list.append(f)
    with open("/test.list", "w") as f:
        f.write('\n'.join(my_test_list))
# fmt: on


def print_share(kind: str, list_path: str) -> None:
    with open(list_path) as file:
        paths = file.read().split("\n") if os.path.getsize(list_path) else []
    lines = 0
    for path in paths:
        with gzip.open(path, "rt") as part:
            here = sum(1 for _ in part)
        print(f"{kind} file {path}: {here} lines", flush=True)
        lines += here
    print(f"{kind} share: {len(paths)} files, {lines} lines", flush=True)


def main() -> None:
    if not os.path.exists("/trainer_id"):
        sys.exit(
            "error: there is no /trainer_id here. This program runs as a job, in a replica with "
            "a root of its own (needs bubblewrap on the machine that runs it)."
        )
    gen_train_list(HOME)
    with open("/trainer_id") as file:
        trainer_id = file.readline().strip()
    with open("/trainer_count") as file:
        trainer_count = file.readline().strip()
    print(f"trainer {trainer_id} of {trainer_count}", flush=True)
    print_share("train", "/train.list")
    print_share("test", "/test.list")


if __name__ == "__main__":
    main()
