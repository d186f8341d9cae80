# builder gate --env runs this program in the interpreter of an environment. It asks the
# loader and processes of its own which libraries extension modules get, and prints the
# answers as JSON. It imports no package: it only opens their libraries.
import sys

sys.path[:] = [path for path in sys.path if path]  # not the working directory

import base64, csv, ctypes, hashlib, importlib.metadata, json, mmap, os, re, signal, struct, subprocess

FAMILY = re.compile(r"lib(nccl|rccl|nvshmem_host|cudart|amdhip64)(-[0-9a-f]{6,})?\.so(\.\d+)*$")
DRIVER = re.compile(r"lib(cuda|nvidia-[\w-]+|nvcuvid|nvoptix)\.so(\.|$)")  # of the GPU's driver
LIBRARY = re.compile(r"\.so(\.\d+)*$")
TEXT = re.compile(rb"(?<=\0)lib[\w+-]{1,60}\.so(?:\.\d+)*(?=\0)")
SECONDS, MAX_SECTION, MAX_NAMES = 60, 1 << 28, 200  # of one question, in bytes, of one library

SITES = list(dict.fromkeys(os.path.realpath(path) for path in sys.path if os.path.isdir(path)))
SITES = [path for path in SITES if path.endswith("-packages") or any(name.endswith(".dist-info") for name in os.listdir(path))]
unreadable = {}


def attempt(default, question, path, *more):
    try:
        return question(path, *more)
    except Exception as fault:
        unreadable[path] = "%s: %s" % (type(fault).__name__, fault)
        return default


def sections(path, names):
    """Returns the machine of an ELF file with 64 bits, and its sections: {name: bytes}."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            return None, {}
        (table,), (count, index) = struct.unpack_from("<Q", head, 40), struct.unpack_from("<HH", head, 60)

        def read(offset, size):
            file.seek(offset)
            return file.read(min(size, MAX_SECTION))

        headers = list(struct.iter_unpack("<IIQQQQIIQQ", read(table, 64 * count)))  # fails if the file is cut off
        texts = read(*headers[index][4:6]) if count else b""
        return head[18:20], {name: read(*header[4:6]) for header in headers for name in [text(texts, header[0])] if re.match(names, name)}


def text(table, at):
    return table[at : table.find(b"\0", at)].decode(errors="replace")


def needed(path):
    """Lists the names that a library needs, or returns None for a file of another kind."""
    machine, found = sections(path, r"\.(dynamic|dynstr)$")
    if machine != MACHINE or ".dynamic" not in found:
        return None
    return [text(found.get(".dynstr", b""), value) for tag, value in struct.iter_unpack("<QQ", found[".dynamic"]) if tag == 1]


MACHINE, PROGRAM = sections(sys.executable, r"\.interp$")
LOADER = PROGRAM[".interp"].rstrip(b"\0").decode()  # what PT_INTERP names


def ask_loader(program, preloaded):
    """Asks the loader what a program would load, and returns {name: path} and its messages."""
    preload = " ".join(filter(None, [os.environ.get("LD_PRELOAD"), *preloaded]))
    env = dict(os.environ, LC_ALL="C", LD_TRACE_LOADED_OBJECTS="1", LD_PRELOAD=preload)
    done = subprocess.run([LOADER, program], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, errors="replace", timeout=SECONDS)
    if done.returncode != 0:
        raise OSError(done.stderr.strip())
    found = re.findall(r"^\t(.+?)(?: => (.+?))?(?: \(0x[0-9a-f]+\))?$", done.stdout, re.M)
    return {os.path.basename(name): "" if at == "not found" else at or name for name, at in found}, done.stderr


def libraries_of(module):
    """Returns the libraries that the interpreter gets with a module."""
    if re.search(r"[\s:]", module):  # LD_PRELOAD cannot hold such a path
        return ask_loader(module, [])[0]
    libraries, messages = ask_loader(os.path.realpath(sys.executable), [module])
    if "cannot be preloaded" in messages:
        raise OSError(messages.strip())
    return libraries


def load(path, first=""):
    """Opens a library in a process, and returns its files of families with their versions."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)  # ends a library that never returns
        said = {"fault": "", "files": {}}
        try:
            for other in filter(None, (first, path)):
                ctypes.CDLL(other, ctypes.RTLD_GLOBAL | os.RTLD_NOW)
            with open("/proc/self/maps") as maps:
                paths = {line.rstrip("\n").split(None, 5)[5] for line in maps if "/" in line}
            said["files"] = {path: version(path) for path in paths if FAMILY.match(os.path.basename(path))}
        except Exception as fault:
            said["fault"] = str(fault)
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(answer) if answer else {"fault": "the process ended with wait status %d" % status, "files": {}}


def version(path):
    """Asks an open NCCL or RCCL for its version."""
    library, number = ctypes.CDLL(path), ctypes.c_int()
    if not hasattr(library, "ncclGetVersion") or library.ncclGetVersion(ctypes.byref(number)) != 0:
        return ""
    major = 10000 if number.value >= 10000 else 1000
    return "%d.%d.%d" % (number.value // major, number.value % major // 100, number.value % 100)


def opens(path, loaded):
    """Returns the library names among the texts of a library, and whether dlopen finds them."""
    names = {name.decode() for data in sections(path, r"\.rodata")[1].values() for name in TEXT.findall(b"\0" + data)}
    asked = sorted(names - loaded - {os.path.basename(path)})[:MAX_NAMES]
    messages = ask_loader(path, asked)[1] if asked else ""
    return {name: "'%s'" % name not in messages for name in asked + sorted(names & loaded)}


def digest(path):
    """Returns the digest of a file in the form of RECORD."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def owners():
    """Returns the libraries in the RECORD of every distribution: {path: [owner]}."""
    owned = {}
    for distribution in importlib.metadata.distributions(path=SITES):
        name, record = distribution.metadata["Name"], distribution.read_text("RECORD")
        for row in csv.reader((record or "").splitlines()):
            if name and len(row) == 3 and LIBRARY.search(row[0]):
                path = os.path.realpath(str(distribution.locate_file(row[0])))
                owned.setdefault(path, []).append({"name": name, "version": distribution.version, "digest": row[1]})
    return owned


def users(needs):
    """Lists the extension modules that need a library of a family, themselves or through others."""
    wanted, before = set(), None
    while before != len(wanted):
        before = len(wanted)
        wanted.update(os.path.basename(path) for path, names in needs.items() if any(FAMILY.match(name) or name in wanted for name in names))
    return sorted(path for path in needs if os.path.basename(path) in wanted and re.search(r"(/(?!lib)[^/]*|\.cpython-[^/]*|\.abi3)\.so$", path))


def missing(libraries):
    return {name for name, at in libraries.items() if not at and not DRIVER.match(name)}


def ask_modules(needs):
    """Asks the loader about each module. One that lacks a library gets it after another module, as torchvision after torch."""
    libraries = {path: attempt({}, libraries_of, path) for path in users(needs)}
    whole = {path: names for path, names in libraries.items() if not missing(names)}
    modules = {}
    for path, names in libraries.items():
        first = max(whole, key=lambda other: len(missing(names) & set(whole[other])), default="")
        first = first if first and missing(names) & set(whole[first]) else ""
        names = dict(names, **whole.get(first, {}))  # the loader does not look again for a loaded name
        modules[path] = {
            "first": first, "process": None, "missing": sorted(missing(names)), "libraries": names,
            "driver": sorted(name for name, at in names.items() if not at and DRIVER.match(name)),
            "families": sorted(os.path.realpath(at) for name, at in names.items() if at and FAMILY.match(name)),
        }
    return modules


def answer():
    found = [os.path.join(folder, name) for site in SITES for folder, _, names in os.walk(site) if "include" not in folder.split("/") for name in names if LIBRARY.search(name)]
    needs = {path: names for path in found if os.path.isfile(path) for names in [attempt(None, needed, path)] if names is not None}
    modules, owned, files, asked = ask_modules(needs), owners(), {}, set()
    for path, module in modules.items():  # one process for each package and set of files
        package = os.path.relpath(path, next(site for site in SITES if path.startswith(site + "/"))).split("/")[0]
        key = (package, *module["families"])
        if not (key in asked or module["missing"] or module["driver"]):
            asked.add(key)
            module["process"] = attempt(None, load, path, module["first"])
    processes = [module["process"] for module in modules.values() if module["process"]]
    for at in {at for module in modules.values() for at in module["families"]} | {os.path.realpath(path) for path in needs if FAMILY.match(os.path.basename(path))}:
        process = next((process for process in processes if at in process["files"]), None) or attempt({"fault": "not asked", "files": {}}, load, at)
        files[at] = {"version": process["files"].get(at, ""), "fault": process["fault"]}
    loaded = {name: at for module in modules.values() for name, at in module["libraries"].items() if at}
    for at in files:
        files[at]["opens"] = attempt({}, opens, at, set(loaded))
    told = {path: by for path, by in owned.items() if FAMILY.match(os.path.basename(path)) or len({owner["digest"] for owner in by}) > 1}
    libraries = {os.path.realpath(path) for path in [*needs, *loaded.values(), *told]}
    return {
        "python": sys.executable, "sites": SITES, "unreadable": unreadable, "files": files,
        "modules": {path: dict(module, libraries=len(module["libraries"])) for path, module in modules.items()},
        "owned": {path: {"by": by, "digest": attempt("", digest, path) if os.path.exists(path) else ""} for path, by in told.items()},
        "libraries": {path: ["%(name)s %(version)s" % owner for owner in owned.get(path, [])] for path in libraries},
    }


out = os.dup(1)
os.dup2(2, 1)  # what a library prints is no answer
with os.fdopen(out, "w") as file:
    json.dump(answer(), file)
