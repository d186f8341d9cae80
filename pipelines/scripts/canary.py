"""Try to leave the container. Prints one line of JSON with what happened and
fails if anything was reachable, or if the environment names the run or the
processor: a build that could fetch, or tell one run or host from another, is not
hermetic."""
import json
import os
import socket
import sys

# Documentation addresses (RFC 5737, RFC 3849) and the first name server: with a
# route a connect times out or is refused, without one the kernel answers
# "Network is unreachable" at once.
targets = [(socket.AF_INET, ("192.0.2.1", 443)), (socket.AF_INET6, ("2001:db8::1", 443))]
try:
    with open("/etc/resolv.conf") as conf:
        servers = [line.split()[1] for line in conf if line.startswith("nameserver") and len(line.split()) > 1]
    targets += [(socket.AF_INET6 if ":" in s else socket.AF_INET, (s, 53)) for s in servers[:1]]
except OSError:
    pass

attempts, reached = {}, False
for family, address in targets:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as s:
            s.settimeout(3)
            s.connect(address)
        attempts[address[0]], reached = "connected", True
    except OSError as err:
        attempts[address[0]] = str(err)
        # Anything but "no route" means that packets left.
        reached = reached or err.errno not in (101, 97, 99)
with open("/proc/net/route") as routes:
    rows = len(routes.readlines()) - 1
with open("/proc/self/status") as status:
    caps = {line.split(":")[0]: line.split()[1] for line in status if line.startswith("Cap")}
reached = reached or rows > 0
# What the engine adds to the environment of an exec must be gone: it names the
# run, and a build that sees it differs from the next.
leaked = sorted(name for name in os.environ if name.startswith(("OTEL_", "TRACE", "BAGGAGE", "DAGGER", "_DAGGER", "BUILDER_")))
with open("/proc/cpuinfo") as info:
    plain = "model name\t: builder" in info.read()
print(json.dumps({"canary": "escaped" if reached else "refused", "attempts": attempts, "routes": rows, "capabilities": caps, "leaked": leaked, "processor": "plain" if plain else "of the host"}))
sys.exit(3 if reached or leaked or not plain else 0)
