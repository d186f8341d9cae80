"""Tries to leave the sandbox and prints one line of JSON with each answer.

It fails if anything was reached, if the environment names the run, or if a file that
the sandbox masks shows the host. A build that could fetch, change its host, or tell
one run or host from another is not hermetic. A new attempt is one line of ATTEMPTS.
"""
import ctypes
import errno
import json
import os
import resource
import socket
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
GUEST_ROOT = 2_000_000_000


class Reached(Exception):
    """What an attempt got hold of."""


def call(function, *args):
    """Calls a function of libc; what it refuses is an OSError."""
    result = getattr(libc, function)(*args)
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def syscall(number, *args):
    return call("syscall", ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])


def barred(number, *args):
    """Makes a system call with arguments that do nothing where it is allowed: any
    answer but EPERM comes from the kernel behind the filter."""
    try:
        syscall(number, *args)
    except OSError as err:
        if err.errno == errno.EPERM:
            raise
        raise Reached(f"the kernel answers: {err}")


def write(path):
    """Opens a file for writing and writes what is in it already: nothing changes."""
    with open(path, "rb") as f:
        old = f.read(4096)
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, old or b"\n")
    finally:
        os.close(fd)


def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(3)
        s.connect(address)


def interfaces():
    names = sorted(name for _, name in socket.if_nameindex())
    if names != ["lo"]:
        raise Reached(f"interfaces {names}")
    raise OSError(errno.ENODEV, "only lo")


def routes():
    with open("/proc/net/route") as table:
        rows = table.read().splitlines()[1:]
    if rows:
        raise Reached(f"{len(rows)} routes")
    raise OSError(errno.ENETUNREACH, "no route")


def processes():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read()
        except OSError:
            continue
        if b"engine" in line.split(b"\0")[0] or b"/.init" in line.split(b"\0")[0]:
            raise Reached(f"process {pid}: {line[:80]!r}")
    raise OSError(errno.ESRCH, f"only {len([p for p in os.listdir('/proc') if p.isdigit()])} processes of its own")


def root_of_the_host():
    with open("/proc/self/uid_map") as table:
        rows = [tuple(map(int, line.split())) for line in table]
    if rows != [(0, GUEST_ROOT, 65536)]:
        raise Reached(f"users {rows}")
    raise OSError(errno.EPERM, f"root is user {GUEST_ROOT} of the host")


def regain_root():
    os.setresuid(0, 0, 0)
    held = [line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff", "CapBnd", "CapAmb"))]
    if any(int(caps, 16) for caps in held):
        raise Reached(f"capabilities {held}")
    raise OSError(errno.EPERM, "no capability")


def status(name, want):
    with open("/proc/self/status") as lines:
        got = next(line.split()[1] for line in lines if line.startswith(name + ":"))
    if got != want:
        raise Reached(f"{name} is {got}")
    raise OSError(errno.EPERM, f"{name} is {got}")


def unbounded(name, limit):
    soft, hard = resource.getrlimit(getattr(resource, name))
    if hard == resource.RLIM_INFINITY or hard > limit:
        raise Reached(f"{name} {hard}")
    raise OSError(errno.EPERM, f"at most {hard}")


def devices(allowed="null zero full random urandom tty ptmx pts shm core fd stdin stdout stderr console".split()):
    more = sorted(set(os.listdir("/dev")) - set(allowed))
    if more:
        raise Reached(f"devices {more}")
    raise OSError(errno.ENODEV, "only the usual ones")


def empty(path):
    if not os.path.exists(path):
        raise OSError(errno.ENOENT, "not there")
    held = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(4096)
    if held:
        raise Reached(f"{path} holds {held[:60]!r}")
    raise OSError(errno.ENOENT, "empty")


def masked():
    """Files of /proc beside those that docs/hermetic.md names."""
    named = "cpuinfo loadavg meminfo mounts net self stat sys sysvipc thread-self uptime version vmstat".split()
    got = [name for name in sorted(os.listdir("/proc")) if not name.isdigit() and name not in named and holds("/proc/" + name)]
    if got:
        raise Reached(f"/proc holds {got}")
    raise OSError(errno.ENOENT, "empty")


def holds(path):
    """Whether anything can be read at a path."""
    try:
        if os.path.isdir(path):
            return bool(os.listdir(path))
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return bool(os.read(fd, 4096))
        finally:
            os.close(fd)
    except OSError:
        return False


def shows(path, want):
    with open(path) as f:
        got = f.read(4096)
    if want not in got:
        raise Reached(f"{path} says {got[:60]!r}")
    raise OSError(errno.ENOENT, "the same everywhere")


def neighbours():
    with open("/proc/net/unix") as table:
        rows = [line for line in table.read().splitlines()[1:] if "@" in line or "/run" in line]
    if rows:
        raise Reached(f"sockets {rows[:3]}")
    raise OSError(errno.ENOENT, "no socket of another process")


def make_device():
    os.mknod("/tmp/builder-canary", 0o600 | 0o060000, os.makedev(7, 0))
    os.unlink("/tmp/builder-canary")


def make_cgroup():
    os.mkdir("/sys/fs/cgroup/builder-canary")
    os.rmdir("/sys/fs/cgroup/builder-canary")


def opens(path, flags):
    os.close(os.open(path, flags))


def families():
    """Sockets of every family but local, IPv4, IPv6 and netlink."""
    got = []
    for family in set(range(46)) - {0, 1, 2, 10, 16}:
        try:
            socket.socket(family, socket.SOCK_DGRAM).close()
            got.append(family)
        except OSError:
            pass
    if got:
        raise Reached(f"families {got}")
    raise OSError(errno.EPERM, "none")


AUDIT = 9  # NETLINK_AUDIT: groupadd of Debian accepts only the answer of a kernel without audit


def netlink():
    """Interfaces of the kernel over netlink, beside that for network interfaces."""
    got = []
    for protocol in range(1, 32):
        try:
            socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol).close()
            got.append(protocol)
        except OSError as err:
            # The filter answers with these, and the kernel behind it with others.
            if err.errno != (errno.EPROTONOSUPPORT if protocol == AUDIT else errno.EPERM):
                got.append(protocol)
    if got:
        raise Reached(f"protocols {got}")
    raise OSError(errno.EPERM, "none")


def leave_root():
    here = os.open("/tmp", os.O_RDONLY)
    os.mkdir("/tmp/builder-canary")
    try:
        os.chroot("/tmp/builder-canary")
    finally:
        os.fchdir(here)
        os.rmdir("builder-canary")


def text(words):
    return ctypes.create_string_buffer(words)


# The attempts by name. Each ends in an OSError, which is its refusal; any other end
# means that it got through. No attempt changes anything where it gets through.
ATTEMPTS = {
    "connect over IPv4": lambda: connect(socket.AF_INET, ("192.0.2.1", 443)),  # RFC 5737
    "connect over IPv6": lambda: connect(socket.AF_INET6, ("2001:db8::1", 443)),  # RFC 3849
    "connect over UDP": lambda: connect(socket.AF_INET, ("192.0.2.1", 53), socket.SOCK_DGRAM),
    "connect to a metadata service": lambda: connect(socket.AF_INET, ("169.254.169.254", 80)),
    "routes": routes,
    "interfaces": interfaces,
    "sockets of neighbours": neighbours,
    "AF_PACKET": lambda: socket.socket(17, socket.SOCK_RAW).close(),
    "AF_ALG": lambda: socket.socket(38, socket.SOCK_SEQPACKET).close(),
    "AF_VSOCK": lambda: socket.socket(40, socket.SOCK_STREAM).close(),
    "AF_KEY": lambda: socket.socket(15, socket.SOCK_RAW, 2).close(),
    "AF_BLUETOOTH": lambda: socket.socket(31, socket.SOCK_RAW).close(),
    "other address families": families,
    "netlink beside interfaces": netlink,
    "core_pattern": lambda: write("/proc/sys/kernel/core_pattern"),
    "modprobe": lambda: write("/proc/sys/kernel/modprobe"),
    "sysrq-trigger": lambda: opens("/proc/sysrq-trigger", os.O_WRONLY),
    "/sys": lambda: empty("/sys"),
    "uevent_helper": lambda: write("/sys/kernel/uevent_helper"),
    "control groups": make_cgroup,
    "devices": devices,
    "loop-control": lambda: opens("/dev/loop-control", os.O_RDWR),
    "loop0": lambda: opens("/dev/loop0", os.O_RDONLY),
    "kvm": lambda: opens("/dev/kvm", os.O_RDWR),
    "fuse": lambda: opens("/dev/fuse", os.O_RDWR),
    "make a device": make_device,
    "log of the kernel": lambda: opens("/dev/kmsg", os.O_RDONLY),
    "mount": lambda: barred(165, text(b"none"), text(b"/nowhere"), text(b"tmpfs"), 0, 0),
    "unmount": lambda: barred(166, text(b"/nowhere"), 0),
    "fsopen": lambda: barred(430, text(b"nothing"), 0),
    "pivot_root": lambda: barred(155, text(b"/nowhere"), text(b"/nowhere")),
    "chroot": leave_root,
    "new user namespace": lambda: call("unshare", 0x10000000),
    "new mount namespace": lambda: call("unshare", 0x00020000),
    "enter a namespace": lambda: barred(308, -1, 0),  # setns
    "ptrace of a neighbour": lambda: barred(101, 16, 1 << 22, 0, 0),
    "write into a neighbour": lambda: barred(311, 1 << 22, 0, 0, 0, 0, 0),  # process_vm_writev
    "keyctl": lambda: syscall(250, 0, -3, 1),
    "bpf": lambda: barred(321, -1, 0, 0),
    "perf_event_open": lambda: barred(298, 0, 0, -1, -1, 0),
    "userfaultfd": lambda: barred(323, -1),
    "io_uring": lambda: barred(425, 0, 0),
    "load a module": lambda: barred(175, 0, 0, 0),
    "kexec": lambda: barred(246, 0, 0, 0, 0xFFFF),
    "reboot": lambda: barred(169, 0, 0, 0, 0),
    "set the clock": lambda: barred(227, 0, text(b"\xff" * 16)),
    "set the host name": lambda: barred(170, 0, 65),
    "open by handle": lambda: barred(304, -100, text(struct.pack("Ii8x", 8, 1)), 0),
    "memory of the kernel": lambda: empty("/proc/kcore"),
    "keys of the kernel": lambda: empty("/proc/keys"),
    "processes of the host": processes,
    "root of the host": root_of_the_host,
    "regain capabilities": regain_root,
    "filter of system calls": lambda: status("Seccomp", "2"),
    "no_new_privs": lambda: status("NoNewPrivs", "1"),
    "unbounded processes": lambda: unbounded("RLIMIT_NPROC", 32768),
    "unbounded open files": lambda: unbounded("RLIMIT_NOFILE", 65536),
    "core dumps": lambda: unbounded("RLIMIT_CORE", 0),
    "file of the host": lambda: write("/.init"),
    "command line of the kernel": lambda: empty("/proc/cmdline"),
    "partitions": lambda: empty("/proc/partitions"),
    "interrupts of devices": lambda: empty("/proc/irq"),
    "buses of the host": lambda: empty("/proc/bus"),
    "file systems of the host": lambda: empty("/proc/fs"),
    "kinds of file systems": lambda: empty("/proc/filesystems"),
    "device drivers": lambda: empty("/proc/devices"),
    "small device drivers": lambda: empty("/proc/misc"),
    "cryptography of the host": lambda: empty("/proc/crypto"),
    "control groups of the host": lambda: empty("/proc/cgroups"),
    "consoles": lambda: empty("/proc/consoles"),
    "free pages": lambda: empty("/proc/buddyinfo"),
    "file locks of the host": lambda: empty("/proc/locks"),
    "other files of /proc": masked,
    "directory entries of the host": lambda: empty("/proc/sys/fs/dentry-state"),
    "inodes of the host": lambda: empty("/proc/sys/fs/inode-nr"),
    "open files of the host": lambda: empty("/proc/sys/fs/file-nr"),
    "faults of the kernel": lambda: empty("/proc/sys/kernel/tainted"),
    "drives of the host": lambda: empty("/proc/sys/dev"),
    "boot_id": lambda: shows("/proc/sys/kernel/random/boot_id", "00000000-0000-0000-0000-000000000000"),
    "uptime": lambda: shows("/proc/uptime", "0.00 0.00"),
    "load": lambda: shows("/proc/loadavg", "0.00 0.00 0.00"),
    "kernel in /proc/version": lambda: shows("/proc/version", "Linux version builder"),
    "processor in /proc/cpuinfo": lambda: shows("/proc/cpuinfo", "model name\t: builder\n"),
    "host name": lambda: shows("/proc/sys/kernel/hostname", "localhost\n"),
    "name servers": lambda: empty("/etc/resolv.conf"),
}


def answer(attempt):
    """Whether an attempt was refused, and in which words."""
    try:
        attempt()
    except Reached as err:
        return False, str(err)
    except OSError as err:
        # A connection that was refused or timed out has left the sandbox.
        left = isinstance(err, TimeoutError) or err.errno in (errno.ECONNREFUSED, errno.EHOSTUNREACH)
        return not left, err.strerror or str(err)
    return False, "nothing refused it"


def apart(attempt):
    """Answers in a process of its own: an attempt that gets through changes the
    process that it runs in."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(writer, json.dumps(answer(attempt)).encode())
        os._exit(0)
    os.close(writer)
    with open(reader) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(said) if said else (False, "the attempt crashed")


def main():
    answers, reached = {}, []
    for name, attempt in ATTEMPTS.items():
        refused, answers[name] = apart(attempt)
        if not refused:
            reached.append(name)
    # What the engine adds to the environment of an exec names the run.
    leaked = sorted(name for name in os.environ if name.startswith(("OTEL_", "TRACE", "BAGGAGE", "DAGGER", "_DAGGER", "BUILDER_")))
    print(json.dumps({"canary": "escaped" if reached else "refused", "reached": reached, "attempts": answers, "leaked": leaked}))
    if reached or leaked:
        for name in reached:
            print(f"got through: {name}: {answers[name]}", file=sys.stderr)
        for name in leaked:
            print(f"the environment holds {name}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
