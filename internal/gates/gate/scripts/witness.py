"""What the programs of the gates share that watch processes of an artifact.

A watched process may hold any code. It has the user of its watcher and nothing else of
it: its watcher is closed to it, and what counts of it comes from the kernel.
"""
import ctypes
import hashlib
import os
import re
import tempfile

# prctl(2)
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, SIGKILL = 1, 4, 9


def close_to_others():
    """Close this process's memory and descriptors to others of the same user."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def open_to_others():
    """Let the watcher of a forked process read its maps."""
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)


def now():
    """The time that the kernel gives to a file that changes now."""
    with tempfile.TemporaryFile() as file:
        return os.fstat(file.fileno()).st_ctime_ns


def mapped(pid, pattern, members):
    """The files that a process maps and whose paths match, with the digests of those at the paths of members."""
    with open("/proc/%d/maps" % pid) as maps:
        fields = [line.rstrip("\n").split(None, 5) for line in maps]
    found = []
    for path in sorted({f[5] for f in fields if len(f) == 6 and re.search(pattern, f[5])}):
        digest = ""
        if path.endswith(tuple("/" + member for member in members)) and os.path.isfile(path):
            with open(path, "rb") as f:
                digest = hashlib.sha256(f.read()).hexdigest()
        found.append({"path": path, "sha256": digest})
    return found


class Ends:
    """The beginning and the end of a text, however long it is."""

    def __init__(self, most=64 << 10):
        self.most, self.first, self.last, self.left_out = most, b"", b"", 0

    def add(self, data):
        room = self.most - len(self.first)
        self.first, self.last = self.first + data[:room], self.last + data[room:]
        self.left_out += max(0, len(self.last) - self.most)
        self.last = self.last[-self.most:]

    def text(self):
        between = b"\n... %d bytes left out ...\n" % self.left_out if self.left_out else b""
        return (self.first + between + self.last).decode(errors="replace")
