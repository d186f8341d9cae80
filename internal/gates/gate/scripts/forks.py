"""Loads frameworks once, and starts the ranks of a job as its forks.

    PYTHON -B forks.py CHANNEL MODULE...

ranks.py starts it, and asks it for ranks over the descriptor CHANNEL. A request is one
message of JSON with the "program" of the rank and its environment "env", and carries the
rank's own channel, its output and, with MPICH, its launcher's. The answer is the process of the rank, which is a
child of ranks.py: the kernel tells its exit status there, and not here. With it comes the time at which the
frameworks were there: what they wrote is older.

Nothing of the artifact runs in this process. Only a fork imports it.
"""
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import struct
import sys
import time

import witness


def run(request, starter, channel, output, launcher=None):
    """The rank: run its program as Python would run it alone."""
    os.environ.clear()
    os.environ.update(request["env"], GATE_CHANNEL=str(channel))
    if launcher is not None:
        os.environ["PMI_FD"] = str(launcher)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    while os.getppid() == starter:  # its end would be that of the parent
        time.sleep(0.001)
    witness.end_with_parent()
    witness.open_to_others()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.argv = request["program"]
    runpy.run_path(os.path.abspath(sys.argv[0]), run_name="__main__")
    sys.exit(0)


def start(request, descriptors, asked):
    """Start a rank, and return its process.

    A process between them ends at once, so that the rank becomes a child of ranks.py.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    said, say = os.pipe()
    starter = os.fork()
    if starter == 0:
        starter = os.getpid()
        rank = os.fork()
        if rank == 0:
            asked.close()  # its holder can start ranks
            os.close(said)
            os.close(say)
            run(request, starter, *descriptors)
        os.write(say, struct.pack("i", rank))
        os._exit(0)
    os.waitpid(starter, 0)
    rank = os.read(said, 4)
    for descriptor in (said, say, *descriptors):
        os.close(descriptor)
    return rank


def main():
    witness.close_to_others()
    witness.end_with_parent()
    asked = socket.socket(fileno=int(sys.argv[1]))
    for module in sys.argv[2:]:
        try:
            importlib.import_module(module)
        except BaseException:  # the ranks report it
            pass
    loaded = struct.pack("q", witness.now())
    gc.freeze()  # so that no fork writes to the objects of the frameworks, which copies their pages
    while True:
        request, descriptors, _, _ = socket.recv_fds(asked, 1 << 18, 3)
        if not request:
            break
        asked.send(start(json.loads(request), descriptors, asked) + loaded)


main()
