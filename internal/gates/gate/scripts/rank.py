"""A rank as its launcher sees it: a process that imports nothing of the artifact.

    PYTHON -I -S -B rank.py SOCKET

A launcher starts it. It tells ranks.py over SOCKET which rank it is, and hands on what
the rank's program finds the other ranks by: its environment, and MPICH's descriptor of
its launcher. When that program has ended, it ends with the same exit status.
"""
import json
import os
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import witness


def number():
    """The rank by the launcher's word: Open MPI's, MPICH's, or Horovod's."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


witness.close_to_others()
runner = socket.socket(socket.AF_UNIX)
runner.connect(sys.argv[1])
launchers = [int(os.environ["PMI_FD"])] if "PMI_FD" in os.environ else []
socket.send_fds(runner, [(json.dumps({"rank": number(), "env": dict(os.environ)}) + "\n").encode()], launchers)
ended = json.loads(runner.makefile("r", encoding="utf-8").readline())
os._exit(ended["exit"])  # launchers end the other ranks after a failure
