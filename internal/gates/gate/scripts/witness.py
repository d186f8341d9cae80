"""What the programs of the gates share that watch processes of an artifact.

A watched process may hold any code. It has the user of its watcher and nothing else of
it: its watcher is closed to it, and what counts of it comes from the kernel.
"""
import ctypes
import hashlib
import os
import re
import socket
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


def patched(pid):
    """The files whose code in the memory of a process is no longer that of the file: the kernel counts its own pages.

    Other memory may lie in the place of a part of the code. Code of a file without a name
    is that of no file; libffi has such code in older releases.
    """
    found, path, last, end, covered = set(), "", "", "", False
    with open("/proc/%d/smaps" % pid) as maps:
        for line in maps:
            fields = line.rstrip("\n").split(None, 5)
            if fields[0].endswith(":"):
                if path.startswith("/") and fields[0] == "Anonymous:" and fields[1] != "0":
                    found.add(path)
                continue
            name, code = fields[5] if len(fields) == 6 else "", "x" in fields[1]
            begin, _, after = fields[0].partition("-")
            if begin != end:
                last, covered = "", False
            if name.startswith("/"):
                if covered and name == last:
                    found.add(name)
                last, covered = name, False
            covered, end, path = covered or code and not name, after, name if code else ""
            if path.startswith("/memfd:") and "libffi" not in path:
                found.add(path)
    return sorted(found)


def sockets(pid):
    """The sockets of the network that a process holds: protocol, and local address and port in hexadecimal digits."""
    held, found = set(), []
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            held.add(os.readlink("/proc/%d/fd/%s" % (pid, name)))
        except OSError:
            pass  # closed since
    for protocol in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6"):
        try:
            with open("/proc/%d/net/%s" % (pid, protocol)) as table:
                rows = [line.split() for line in table][1:]
        except OSError:
            continue  # the kernel has no such protocol
        found += ["%s %s" % (protocol, row[1]) for row in rows if "socket:[%s]" % row[9] in held]
    return sorted(found)


def datagrams():
    """The number of datagrams that the network of this process sent, or had no route for.

    It is 0 where other programs share the network: a container of builder has a loopback alone.
    """
    if [name for _, name in socket.if_nameindex()] != ["lo"]:
        return 0
    with open("/proc/net/snmp") as table:
        rows = [line.split() for line in table]
    counts = {names[0] + name: int(value) for names, values in zip(rows[::2], rows[1::2]) for name, value in zip(names[1:], values[1:])}
    return counts["Udp:OutDatagrams"] + counts["Ip:OutNoRoutes"]


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
