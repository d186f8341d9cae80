# Imports modules and prints the mapped files of a library for each: the module, the path
# and the sha256, separated by tabs. Arguments: MODULE=LIBRARY.
import hashlib
import importlib
import os
import sys

for pair in sys.argv[1:]:
    module, library = pair.split("=")
    importlib.import_module(module)
    with open("/proc/self/maps") as maps:
        fields = [line.rstrip("\n").split(None, 5) for line in maps]
    paths = {f[5] for f in fields if len(f) == 6 and os.path.basename(f[5]).startswith(library)}
    print("== imported", module)
    for path in sorted(paths):
        with open(path, "rb") as f:
            print(module, path, hashlib.sha256(f.read()).hexdigest(), sep="\t")
