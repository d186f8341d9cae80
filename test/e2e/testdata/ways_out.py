"""Tries to escape from a step or a gate, as an attacker would. Prints the number of
attempted ways and the names of the successful ones. Each way names the attempt of the
canary that covers it."""
import ctypes
import json
import os
import resource
import socket
import struct
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)


def syscall(number, *args):
    result = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def shell(command):
    """Runs a command. A failed or missing command is a refusal."""
    done = subprocess.run(["sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    if done.returncode:
        raise OSError(done.returncode, done.stderr.decode(errors="replace"))


def put(path, words):
    with open(path, "w") as f:
        f.write(words)


def get(path, size=16):
    with open(path, "rb") as f:
        if not f.read(size):
            raise OSError(0, "empty")


def entries(path):
    if not os.listdir(path):
        raise OSError(0, "empty")


def connects(family, kind, address):
    with socket.socket(family, kind) as s:
        s.settimeout(3)
        s.connect(address)


def child():
    pid = os.fork()
    if pid == 0:
        time.sleep(5)
        os._exit(0)
    return pid


def traces():
    pid = child()
    try:
        syscall(101, 16, pid, 0, 0)
        os.waitpid(pid, 0)
    finally:
        os.kill(pid, 9)


def writes_memory():
    pid = child()
    word = ctypes.create_string_buffer(b"x")
    vector = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(word), 1))
    try:
        syscall(311, pid, vector, 1, vector, 1, 0)
    finally:
        os.kill(pid, 9)


def process_of_the_host():
    """Succeeds if it sees a process of the host: inside, every process runs as root."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if os.stat("/proc/" + pid).st_uid != 0:
            return
    raise OSError(0, "none")


def release_agent():
    os.mkdir("/sys/fs/cgroup/out")
    put("/sys/fs/cgroup/out/release_agent", "/tmp/x")


def crash_handler():
    put("/proc/sys/kernel/core_pattern", "|/tmp/handler")


def grows():
    resource.setrlimit(resource.RLIMIT_NPROC, (1 << 20, 1 << 20))


def another_user():
    os.setuid(1000)


def now():
    return ctypes.create_string_buffer(struct.pack("qq", int(time.time()), 0))


# name of the way: (attempt of the canary, function)
WAYS = {
    "crash handler of the host": ("core_pattern", crash_handler),
    "module loader of the host": ("modprobe", lambda: put("/proc/sys/kernel/modprobe", "/tmp/x")),
    "settings of memory": ("core_pattern", lambda: put("/proc/sys/vm/overcommit_memory", "1")),
    "sysrq": ("sysrq-trigger", lambda: put("/proc/sysrq-trigger", "h")),
    "hot-plug helper": ("uevent_helper", lambda: put("/sys/kernel/uevent_helper", "/tmp/x")),
    "firmware path": ("/sys", lambda: put("/sys/module/firmware_class/parameters/path", "/tmp")),
    "release agent of a control group": ("control groups", release_agent),
    "disk by its name": ("devices", lambda: get("/dev/vda")),
    "disk by its number": ("make a device", lambda: shell("mknod /tmp/disk b 254 0 && head -c 16 /tmp/disk")),
    "loop device": ("loop-control", lambda: shell("truncate -s 1M /tmp/image && losetup -f /tmp/image")),
    "virtual machines": ("kvm", lambda: os.open("/dev/kvm", os.O_RDWR)),
    "file systems in user space": ("fuse", lambda: os.open("/dev/fuse", os.O_RDWR)),
    "mount a tmpfs": ("mount", lambda: shell("mount -t tmpfs tmpfs /mnt")),
    "mount proc": ("mount", lambda: shell("mount -t proc proc /mnt")),
    "mount sysfs": ("mount", lambda: shell("mount -t sysfs sysfs /sys")),
    "bind the root": ("mount", lambda: shell("mount --bind / /mnt")),
    "make /proc/sys writable": ("mount", lambda: shell("mount -o remount,rw,bind /proc/sys")),
    "take a mask away": ("unmount", lambda: shell("umount -l /proc/cpuinfo")),
    "new mount interface": ("fsopen", lambda: syscall(430, ctypes.create_string_buffer(b"tmpfs"), 0)),
    "root of a user namespace": ("new user namespace", lambda: shell("unshare --user --map-root-user true")),
    "network namespace": ("new mount namespace", lambda: shell("unshare --net true")),
    "namespaces of process 1": ("enter a namespace", lambda: shell("nsenter --target 1 --mount --net true")),
    "pivot_root": ("pivot_root", lambda: shell("pivot_root / /mnt")),
    "chroot": ("chroot", lambda: os.chroot("/mnt")),
    "TCP": ("connect over IPv4", lambda: connects(socket.AF_INET, socket.SOCK_STREAM, ("192.0.2.1", 80))),
    "TCP over IPv6": ("connect over IPv6", lambda: connects(socket.AF_INET6, socket.SOCK_STREAM, ("2001:db8::1", 80))),
    "UDP": ("connect over UDP", lambda: connects(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53))),
    "ICMP": ("connect over IPv4", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)),
    "packets": ("AF_PACKET", lambda: socket.socket(17, socket.SOCK_RAW)),
    "hypervisor": ("AF_VSOCK", lambda: connects(40, socket.SOCK_STREAM, (2, 1024))),
    "cryptography of the kernel": ("AF_ALG", lambda: socket.socket(38, socket.SOCK_SEQPACKET)),
    "events of devices": ("netlink beside interfaces", lambda: socket.socket(16, socket.SOCK_RAW, 15)),
    "audit of the kernel": ("netlink beside interfaces", lambda: socket.socket(16, socket.SOCK_RAW, 9)),
    "connectors of the kernel": ("netlink beside interfaces", lambda: socket.socket(16, socket.SOCK_DGRAM, 11)),
    "trace a process": ("ptrace of a neighbour", traces),
    "write another's memory": ("write into a neighbour", writes_memory),
    "add a key": ("keyctl", lambda: syscall(248, ctypes.create_string_buffer(b"user"), ctypes.create_string_buffer(b"x"), ctypes.create_string_buffer(b"y"), 1, -3)),
    "load a BPF program": ("bpf", lambda: syscall(321, 0, ctypes.create_string_buffer(128), 128)),
    "performance counters": ("perf_event_open", lambda: syscall(298, ctypes.create_string_buffer(struct.pack("II", 1, 112) + bytes(104)), 0, -1, -1, 0)),
    "userfaultfd": ("userfaultfd", lambda: syscall(323, 1)),
    "io_uring": ("io_uring", lambda: syscall(425, 1, ctypes.create_string_buffer(120))),
    "load a module": ("load a module", lambda: syscall(175, ctypes.create_string_buffer(b"x"), 1, ctypes.create_string_buffer(b""))),
    "another kernel": ("kexec", lambda: syscall(246, 0, 0, 0, 0)),
    "clock": ("set the clock", lambda: syscall(227, 0, now())),
    "host name": ("set the host name", lambda: syscall(170, ctypes.create_string_buffer(b"out"), 3)),
    "log of the kernel": ("log of the kernel", lambda: syscall(103, 10, 0, 0)),
    "memory of the kernel": ("memory of the kernel", lambda: get("/proc/kcore")),
    "interrupts of a device": ("interrupts of devices", lambda: get("/proc/irq/default_smp_affinity")),
    "device of a bus": ("buses of the host", lambda: get("/proc/bus/pci/devices")),
    "options of a file system": ("file systems of the host", lambda: entries("/proc/fs")),
    "device numbers": ("device drivers", lambda: get("/proc/devices")),
    "other device numbers": ("small device drivers", lambda: get("/proc/misc")),
    "ciphers": ("cryptography of the host", lambda: get("/proc/crypto")),
    "file systems": ("kinds of file systems", lambda: get("/proc/filesystems")),
    "number of control groups": ("control groups of the host", lambda: get("/proc/cgroups")),
    "console": ("consoles", lambda: get("/proc/consoles")),
    "free memory by size": ("free pages", lambda: get("/proc/buddyinfo")),
    "locks": ("file locks of the host", lambda: get("/proc/locks")),
    "swap": ("other files of /proc", lambda: get("/proc/swaps")),
    "cached names": ("directory entries of the host", lambda: get("/proc/sys/fs/dentry-state")),
    "cached inodes": ("inodes of the host", lambda: get("/proc/sys/fs/inode-nr")),
    "number of open files": ("open files of the host", lambda: get("/proc/sys/fs/file-nr")),
    "state of the kernel": ("faults of the kernel", lambda: get("/proc/sys/kernel/tainted")),
    "optical drives": ("drives of the host", lambda: entries("/proc/sys/dev")),
    "processes of the host": ("processes of the host", process_of_the_host),
    "program of the engine": ("file of the host", lambda: put("/.init", "x")),
    "more processes": ("unbounded processes", grows),
    "another user": ("regain capabilities", another_user),
}


def led_out(way):
    pid = os.fork()
    if pid == 0:
        try:
            way()
        except Exception:
            os._exit(0)
        os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


if __name__ == "__main__":
    if sys.argv[1:] == ["names"]:
        print("\n".join(sorted({attempt for attempt, _ in WAYS.values()})))
    else:
        out = [name for name, (_, way) in WAYS.items() if led_out(way)]
        print(json.dumps({"tried": str(len(WAYS)), "out": ", ".join(out) or "none"}))
