"""One rank: a process that imports nothing of the artifact, and its child, the rank's program.

    PYTHON -I -S rank.py SOCKET

A launcher starts it. It gets the rank's part of the task from ranks.py over SOCKET and
gives it to the child, passes on what the child reports, and says with which exit status
the kernel ended the child. The child begins only when every rank has its part, so no
program of one rank can take the part of another.
"""
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import witness

MOST = 64 << 20  # bytes that a child may report


def number():
    """The rank by the launcher's word: Open MPI's, MPICH's, or Horovod's."""
    for name in ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "HOROVOD_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


def heard(channel):
    """The lines of a child, also of one that ends without reading its part."""
    try:
        yield from channel.makefile("rb")
    except ConnectionResetError:
        pass


def main():
    witness.close_to_others()
    runner = socket.socket(socket.AF_UNIX)
    runner.connect(sys.argv[1])
    lines = runner.makefile("r", encoding="utf-8")

    def say(**words):
        runner.sendall((json.dumps(words) + "\n").encode())

    say(rank=number())
    begin = json.loads(lines.readline())
    mine, childs = socket.socketpair()
    env = dict(os.environ, GATE_CHANNEL=str(childs.fileno()))
    child = subprocess.Popen(begin["program"], env=env, stdin=subprocess.DEVNULL, pass_fds=[childs.fileno()],
                             preexec_fn=witness.end_with_parent)
    childs.close()
    say(child=child.pid)
    mine.sendall((json.dumps(begin["part"]) + "\n").encode())
    size = 0
    for line in heard(mine):
        size += len(line)
        if size > MOST:
            say(why="it reports more than %d bytes" % MOST)
            child.kill()
            break
        say(line=line.decode(errors="replace").rstrip("\n"))
        if line == b'{"end": true}\n':
            lines.readline()  # every rank has come to its end, and its maps were read
            mine.sendall(b"go\n")
            break
    status = child.wait()
    say(exit=status)
    os._exit(status if status >= 0 else 128 - status)  # launchers end the other ranks after a failure


main()
