"""Ask the dynamic linker of this container for symbols.

The one argument names a JSON file: {"needed": [soname, ...], "symbols":
[[name, version], ...]}; a version of "" stands for none. The answer is one line
of JSON on standard output.
"""
import ctypes
import glob
import json
import os
import sys
import sysconfig

with open(sys.argv[1]) as f:
    ask = json.load(f)


class Info(ctypes.Structure):
    """Dl_info of dlfcn.h."""

    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p),
                ("name", ctypes.c_char_p), ("at", ctypes.c_void_p)]


process = ctypes.CDLL(None)
for function in (process.dlsym, process.dlvsym):
    function.restype = ctypes.c_void_p
process.dlsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
process.dlvsym.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
process.dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(Info)]


def load(soname):
    """Load a library as the loader would, or from a package that brings it.

    A wheel of an MPI puts its library into the environment's lib.
    """
    try:
        return ctypes.CDLL(soname, mode=ctypes.RTLD_GLOBAL)
    except OSError as e:
        failure = e
    beside = os.path.join(sys.prefix, "lib", soname)
    if os.path.basename(soname) == soname and os.path.exists(beside):
        return ctypes.CDLL(beside, mode=ctypes.RTLD_GLOBAL)
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *sys.path}:
        for path in sorted(glob.glob(os.path.join(glob.escape(site), "**", glob.escape(soname)), recursive=True)):
            try:
                return ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
            except OSError as e:
                failure = e
    raise failure


handles, unloaded = [], {}
for soname in ask["needed"]:
    try:
        handles.append(load(soname)._handle)
    except OSError as e:
        unloaded[soname] = str(e)


def find(name, version):
    """Return the base name of the file that gives a symbol, or None.

    The interpreter itself gives what it promises to its extensions and nothing
    else: what it happens to have loaded is not there in another program.
    """
    python = name.startswith(("Py", "_Py"))
    for handle in handles + [process._handle] * python:
        if version:
            at = process.dlvsym(handle, name.encode(), version.encode())
        else:
            at = process.dlsym(handle, name.encode())
        if at:
            info = Info()
            process.dladdr(at, ctypes.byref(info))
            return os.path.basename((info.file or b"?").decode())
    return None


found, missing = {}, []
for name, version in ask["symbols"]:
    where = find(name, version)
    if where is None:
        missing.append(name + ("@" + version if version else ""))
    else:
        found[where] = found.get(where, 0) + 1
print(json.dumps({"unloaded": unloaded, "missing": missing, "found": found}))
