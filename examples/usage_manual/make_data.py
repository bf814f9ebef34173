"""Write a few small training and test files to try the example with.

    python make_data.py [FOLDER]

Makes FOLDER/user001_space/part-00000.gz ... and FOLDER/user001_space_test/..., by default in
the current folder. Runs on your machine, before the upload; never inside the job.
"""

import gzip
import os
import sys

TRAIN_FILES, TEST_FILES = 5, 3
LINES_PER_FILE = 10


def main() -> None:
    target = sys.argv[1] if len(sys.argv) > 1 else "."
    for folder, count in (("user001_space", TRAIN_FILES), ("user001_space_test", TEST_FILES)):
        path = os.path.join(target, folder)
        os.makedirs(path, exist_ok=True)
        for number in range(count):
            with gzip.open(os.path.join(path, f"part-{number:05d}.gz"), "wt") as part:
                part.writelines(
                    f"sample {line} of file {number}\n" for line in range(LINES_PER_FILE)
                )
        print(f"{path}: {count} files")


if __name__ == "__main__":
    main()
