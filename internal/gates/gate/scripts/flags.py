"""Report what an artifact says that it was built with: NAME_built() for each name.

    flags.py module MODULE     by the Python of the artifact
    flags.py library MEMBER    by the functions of its extension, of which MEMBER is the path in the wheel
"""
import ctypes
import importlib
import os
import sys
import sysconfig

import asked

NAMES = ("nccl", "rocm", "cuda", "mpi", "gloo", "ddl", "ccl")


def of_module(name):
    module = importlib.import_module(name)
    return {name: getattr(module, name + "_built")() for name in NAMES}


def of_library(member):
    places = [os.path.join(sysconfig.get_path(scheme), member) for scheme in ("platlib", "purelib")]
    library = ctypes.CDLL(next(filter(os.path.exists, places), places[0]))
    flags = {}
    for name in NAMES:
        function = getattr(library, "horovod_%s_built" % name)
        function.restype = ctypes.c_int if name == "nccl" else ctypes.c_bool
        flags[name] = function()
    return flags


flags = of_module(sys.argv[2]) if sys.argv[1] == "module" else of_library(sys.argv[2])
asked.report(flags={name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in flags.items()})
asked.end()
