"""One rank of many, each on a GPU of its own: collectives on tensors of the GPU, a report
for each case.

The part of a rank holds the cases and its own data. The right results are not known here.
"""
import ctypes
import importlib
import os
import re
import sys

import asked

task = asked.part

# The library reads these at its first call. RCCL has the same names.
log = os.path.abspath("nccl.%d.log" % os.getpid())
os.environ.update(NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,ENV,NET,COLL", NCCL_DEBUG_FILE=log, NCCL_CONF_FILE="/dev/null")

hvd = importlib.import_module(sys.argv[1])
hvd.init()
rank = hvd.rank()


def say(**said):
    asked.report(rank=rank, size=hvd.size(), **said)


def libraries():
    """The files of NCCL and RCCL in this process, with the version that each reports."""
    with open("/proc/self/maps") as f:
        paths = {line.split(None, 5)[5].strip() for line in f if re.search(r"/lib[nr]ccl\.so[^/]*$", line.strip())}
    found = []
    for path in sorted(paths):
        version = ctypes.c_int(0)
        ctypes.CDLL(path).ncclGetVersion(ctypes.byref(version))
        found.append({"path": path, "version": version.value})
    return found


class Log:
    """What the library wrote since the last look."""
    at = 0
    call = re.compile(r"NCCL INFO (\w+): opCount \w+ sendbuff (\S+) recvbuff (\S+) ")

    def news(self):
        """The calls, and the other lines."""
        if not os.path.exists(log):
            return [], []
        with open(log, errors="replace") as f:
            f.seek(self.at)
            text = f.read()
            self.at = f.tell()
        calls, lines = [], []
        for line in text.splitlines():
            found = self.call.search(line)
            if found:
                calls.append((found.group(1), address(found.group(2)), address(found.group(3))))
            elif "CCL " in line:
                lines.append(line)
        return calls, lines


def address(text):
    return int(text, 16) if text.startswith("0x") else 0


def torch_backend():
    import torch

    torch.cuda.set_device(hvd.local_rank())

    class Backend:
        name = torch.cuda.get_device_name()
        gpu = str(getattr(torch.cuda.get_device_properties(hvd.local_rank()), "uuid", ""))

        @staticmethod
        def tensor(t, kind, repeat):
            one = torch.tensor(t["values"], dtype=getattr(torch, kind), device="cuda")
            return one.repeat(repeat).reshape(t["shape"])

        @staticmethod
        def splits(values):
            return torch.tensor(values, dtype=torch.int32)

        @staticmethod
        def read(t, period):
            flat = t.detach().cpu().reshape(-1)
            same = period == 0 or bool((flat.reshape(-1, period) == flat[:period]).all())
            return {
                "shape": list(t.shape), "type": str(t.dtype)[6:], "device": t.device.type, "same": same,
                "values": [float(v) for v in (flat[:period] if period else flat).tolist()],
            }

        @staticmethod
        def place(t):
            return t.data_ptr(), t.data_ptr() + t.numel() * t.element_size()

    return Backend


def tensorflow_backend():
    import numpy
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")
    tf.config.experimental.set_memory_growth(gpus[hvd.local_rank()], True)
    details = tf.config.experimental.get_device_details(gpus[hvd.local_rank()])

    class Backend:
        name = details.get("device_name", "GPU")
        gpu = gpus[hvd.local_rank()].name

        @staticmethod
        def tensor(t, kind, repeat):
            with tf.device("/GPU:0"):
                return tf.identity(tf.constant(numpy.tile(numpy.array(t["values"]).astype(kind), repeat).reshape(t["shape"])))

        @staticmethod
        def splits(values):
            return tf.constant(values, tf.int32)

        @staticmethod
        def read(t, period):
            flat = t.numpy().reshape(-1)
            same = period == 0 or bool((flat.reshape(-1, period) == flat[:period]).all())
            return {
                "shape": list(t.shape), "type": t.dtype.name, "device": "cuda" if "GPU" in t.device else "cpu", "same": same,
                "values": [float(v) for v in (flat[:period] if period else flat)],
            }

        place = None  # TensorFlow does not say where a tensor lies

    return Backend


def collective(case, tensors):
    """One call; None if this release does not have it."""
    function = getattr(hvd, case["op"], None)
    if function is None:
        return None
    options = {"op": getattr(hvd, case["reduce"])} if case["reduce"] else {}
    if case["op"] == "broadcast":
        options["root_rank"] = case["root"]
    if case["op"] == "alltoall":
        return [function(tensors[0], splits=backend.splits(case["splits"]))[0]]
    if case["op"].startswith("grouped_"):
        return list(function(tensors, **options))
    return [function(tensors[0], **options)]


said = {"nccl_built": int(hvd.nccl_built()), "libraries": libraries()}
try:
    backend = tensorflow_backend() if sys.argv[1].endswith(".tensorflow") else torch_backend()
    said.update(name=backend.name, gpu=backend.gpu)
except Exception as e:
    said["error"] = asked.explained(e)
say(case="start", **said)
if "error" in said or not said["nccl_built"]:
    asked.end()
    sys.exit(0)  # a tensor of the GPU would crash what reads it as memory of the host

news = Log()
for case in task["cases"]:
    said = {"case": case["name"]}
    lines = []
    try:
        tensors = [backend.tensor(t, case["type"], case["repeat"]) for t in case["in"]]
        news.news()
        results = collective(case, tensors)
        if results is None:
            said["absent"] = True
        else:
            period = case["period"]
            said["out"] = [backend.read(t, period) for t in results]
            calls, lines = news.news()
            said["calls"] = {kind: sum(1 for c in calls if c[0] == kind) for kind in sorted({c[0] for c in calls})}
            if backend.place:
                places = [backend.place(t) for t in tensors + results]
                said["own"] = sum(1 for c in calls if any(low <= a < high for a in c[1:] for low, high in places))
            else:
                said["own"] = -1
    except Exception as e:
        said["error"] = asked.explained(e)
    say(**said)
    for line in lines:
        say(log=line[:400])
say(case="end", libraries=libraries())
asked.end()
