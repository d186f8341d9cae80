import ctypes, glob, importlib, importlib.util, json, os, re, sys

said = {"imported": "", "fault": "", "files": {}, "says": ""}
out = os.dup(1)
os.dup2(2, 1)  # what a framework prints is no answer
found = {name: importlib.util.find_spec(name) for name in ("torch", "tensorflow", "horovod")}
names = [name for name in ("torch",) if found[name]]
for place in found["horovod"].submodule_search_locations if found["horovod"] else ():
    for framework in ("torch", "tensorflow"):  # "import horovod" alone loads no extension
        if glob.glob(os.path.join(glob.escape(place), framework, "mpi_lib*.so")):
            names.append("horovod.%s.mpi_ops" % framework)
if not names:
    names = [name for name in ("tensorflow", "horovod") if found[name]][:1]
for name in names:
    try:
        module = importlib.import_module(name)
        if name == "torch" and getattr(module.version, "cuda", None):
            said["says"] = ".".join(str(n) for n in module.cuda.nccl.version()[:3])
    except BaseException as fault:
        said["imported"], said["fault"] = name, "%s: %s" % (type(fault).__name__, fault)
        break
    said["imported"] = ", ".join(filter(None, (said["imported"], name)))
wanted = re.compile(r"^lib(nccl|rccl|nvshmem_host|ibverbs|cudart|amdhip64)(-[0-9a-f]+)?\.so(\.\d+)*$")
with open("/proc/self/maps") as maps:
    paths = {line.split(None, 5)[5].strip() for line in maps if line.count("/")}
for path in sorted(paths):
    base = os.path.basename(path)
    if not wanted.match(base):
        continue
    said["files"][path] = ""
    if base.startswith(("libnccl", "librccl")):
        try:
            n = ctypes.c_int()
            if ctypes.CDLL(path).ncclGetVersion(ctypes.byref(n)) == 0:
                major, minor = (n.value // 10000, n.value // 100 % 100) if n.value >= 10000 else (n.value // 1000, n.value // 100 % 10)
                said["files"][path] = "%d.%d.%d" % (major, minor, n.value % 100)
        except (OSError, AttributeError):
            pass
os.write(out, (json.dumps(said) + "\n").encode())
