# Imports a module in a process of its own and prints the files of a library that the
# process maps: the module, the path and the sha256, separated by tabs. Arguments:
# MODULE=LIBRARY, each in its own process.
import hashlib
import os
import re
import subprocess
import sys

child = """import importlib, os, sys
importlib.import_module(sys.argv[1])
os.write(int(sys.argv[2]), b"1")
sys.stdin.buffer.read()
"""
# With LD_BIND_NOW the loader resolves every symbol at once, so a library that lacks one
# fails here and not in the middle of a job.
env = dict(os.environ, LD_BIND_NOW="1")

for pair in sys.argv[1:]:
    module, library = pair.split("=")
    # libnccl of libnccl.so.2, also as auditwheel names a copy: libnccl-0a1b2c3d.so.2
    stem = re.compile(re.escape(library.split(".so")[0]) + r"(-[0-9a-f]{8})?\.so(\.|$)")
    done, says = os.pipe()  # the module can print what it likes
    p = subprocess.Popen([sys.executable, "-c", child, module, str(says)], stdin=subprocess.PIPE, stdout=2, env=env, pass_fds=[says])
    os.close(says)
    if os.read(done, 1) != b"1":
        sys.exit(p.wait() or 1)
    with open("/proc/%d/maps" % p.pid) as maps:
        fields = [line.rstrip("\n").split(None, 5) for line in maps]
    print("== imported", module)
    for path in sorted({f[5] for f in fields if len(f) == 6 and stem.match(os.path.basename(f[5]))}):
        with open(path, "rb") as f:
            print(module, path, hashlib.sha256(f.read()).hexdigest(), sep="\t")
    p.communicate()
