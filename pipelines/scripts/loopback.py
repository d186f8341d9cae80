# Brings the loopback interface up: ioctl SIOCSIFFLAGS with IFF_UP and
# IFF_RUNNING (netdevice(7)), so that an image needs no iproute2.
import fcntl, socket, struct
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    fcntl.ioctl(s, 0x8914, struct.pack("16sh", b"lo", 0x1 | 0x40))
