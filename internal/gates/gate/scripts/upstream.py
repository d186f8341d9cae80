"""Runs one file of upstream's tests, in one process or in one for each rank.

    upstream.py file SECONDS RANKS COMMAND...   starts the ranks and prints one JSON object;
                                                SELF in COMMAND is the path of this script
    upstream.py rank FILE SELECT                is one rank: pytest with a JUnit file of its own

A rank ends with 0 whatever its tests say: a launcher ends all ranks when one of
them does not, and their results would be lost.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

MOST = 4 << 20  # bytes of a rank's JUnit file


def file(seconds, ranks, command):
    with tempfile.TemporaryDirectory(prefix="upstream-") as out:
        run(out, seconds, ranks, command)


def run(out, seconds, ranks, command):
    log = os.path.join(out, "log")
    begun, late = time.monotonic(), False
    command = [os.path.abspath(__file__) if word == "SELF" else word for word in command]
    with open(log, "wb") as sink:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                               start_new_session=True, env=dict(os.environ, UPSTREAM_OUT=out))
        # A caller that stops this process does not know the ranks' process group.
        signal.signal(signal.SIGTERM, lambda *_: (os.killpg(job.pid, signal.SIGKILL), sys.exit(143)))
        try:
            job.wait(seconds)
        except subprocess.TimeoutExpired:
            late = True
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()
    said = {"exit": job.returncode, "seconds": time.monotonic() - begun, "late": late, "log": tail(log),
            "ranks": [one(out, rank) for rank in range(ranks)]}
    print("\n" + json.dumps(said), flush=True)


def one(out, rank):
    """What a rank left; nothing where it did not come to its end."""
    try:
        with open(os.path.join(out, f"{rank}.exit"), encoding="ascii") as f:
            ended = int(f.read())
        with open(os.path.join(out, f"{rank}.xml"), encoding="utf-8", errors="replace") as f:
            junit = f.read(MOST + 1)
    except (OSError, ValueError) as why:
        return {"exit": -1, "junit": "", "why": str(why)}
    if len(junit) > MOST:
        return {"exit": -1, "junit": "", "why": f"its JUnit file has more than {MOST} bytes"}
    return {"exit": ended, "junit": junit, "why": ""}


def tail(path):
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - 8000))
        return f.read().decode("utf-8", "replace")


def rank(path, select):
    import pytest

    number = next((os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK") if name in os.environ), "0")
    tree, out = os.environ["BUILDER_TESTS"], os.environ["UPSTREAM_OUT"]
    os.chdir(os.path.dirname(os.path.join(tree, path)))
    args = ["--rootdir", tree, "-p", "no:cacheprovider", "--tb=short", "-q", "-o", "junit_family=xunit1",
            "-o", "junit_logging=no", "--junitxml", os.path.join(out, f"{number}.xml")]
    if select:
        args += ["-k", select]
    ended = pytest.main(args + [os.path.basename(path)])
    with open(os.path.join(out, f"{number}.exit"), "w", encoding="ascii") as f:
        f.write(str(int(ended)))


if sys.argv[1] == "rank":
    rank(sys.argv[2], sys.argv[3])
else:
    file(float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
