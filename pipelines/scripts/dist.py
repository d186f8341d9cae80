"""Prints the first fault of what a build left in a directory, or nothing.

It runs in a container of the build's image that no step has changed. builder copies the
directory to the host only if it prints nothing.
"""
import os
import stat
import sys

MOST_FILES = 1000
MOST_BYTES = 16 << 30
LONGEST_NAME = 200


def fault(directory):
    files = size = 0
    with os.scandir(directory) as entries:
        for entry in entries:
            shown = ascii(entry.name[:LONGEST_NAME])
            info = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(info.st_mode):
                return f"{shown}, which is no regular file"
            if len(entry.name) > LONGEST_NAME or not (entry.name.isascii() and entry.name.isprintable()):
                return f"{shown}, whose name is not at most {LONGEST_NAME} printable characters of ASCII"
            files += 1
            size += info.st_size  # a sparse file is written in full to the host
            if files > MOST_FILES:
                return f"more than {MOST_FILES} files"
            if size > MOST_BYTES:
                return f"more than {MOST_BYTES >> 30} GiB"
    return ""


if __name__ == "__main__":
    print(fault(sys.argv[1]))
