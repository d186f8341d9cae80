# Makes what a step sees of its surroundings the same everywhere: loopback is the
# only interface and is up, and the processor is a plain one. Runs in namespaces of
# the step's own, before its capabilities are dropped.
import ctypes, fcntl, os, socket, struct

# ioctl SIOCSIFFLAGS with IFF_UP and IFF_RUNNING (netdevice(7)), so that an image
# needs no iproute2.
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))

# A configure script that reads /proc/cpuinfo would choose flags for the machine
# that builds. This is the least that every x86-64 can do.
plain = """processor	: 0
vendor_id	: GenuineIntel
cpu family	: 6
model		: 6
model name	: builder
stepping	: 0
cpu MHz		: 2000.000
cache size	: 1024 KB
siblings	: 1
cpu cores	: 1
flags		: fpu tsc cx8 cmov mmx fxsr sse sse2 syscall nx lm
bogomips	: 4000.00

"""
path = "/dev/shm/.builder-cpuinfo-%d" % os.getpid()
with open(path, "x") as f:
    f.write(plain)
libc = ctypes.CDLL(None, use_errno=True)
if libc.mount(path.encode(), b"/proc/cpuinfo", None, 4096, None) != 0:  # MS_BIND
    raise OSError(ctypes.get_errno(), "mounting /proc/cpuinfo")
os.unlink(path)
