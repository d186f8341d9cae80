"""Print what the extension says that it was built with, as one line of JSON."""
import importlib
import json
import sys

hvd = importlib.import_module(sys.argv[1])
flags = {}
for name in ("nccl", "rocm", "cuda", "mpi", "gloo", "ddl", "ccl"):
    value = getattr(hvd, name + "_built")()
    flags[name] = str(value).lower() if isinstance(value, bool) else str(value)
print(json.dumps(flags))
