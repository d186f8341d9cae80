"""One rank: collectives on CPU tensors of its own values, reported in one line.

The part of a rank holds its values, the root of the broadcast, how many of its values
each rank gets, how to make a large tensor, and settings of Horovod. What is right is not
known here.
"""
import array
import contextlib
import hashlib
import importlib
import math
import os
import re
import resource
import sys
import tempfile
import threading
import time


# The process sets of this process, beside that of all ranks.
sets = []

# What a collective changed that it may not.
touched = []

# Where a rank sees itself: jobs choose its GPU and its data by these numbers.
PLACE = ("local_rank", "local_size", "cross_rank", "cross_size")


def report(hvd, framework, part, changed=list):
    import asked

    module, tensor, device = tensors(framework)

    def all_three(values):
        with device:
            mine = tensor(values)
            results = [hvd.allreduce(mine, op=hvd.Sum), hvd.allgather(mine), hvd.broadcast(mine, root_rank=part["root"])]
            unchanged("collectives", mine, values)
            return [result.numpy().tolist() for result in results]

    def extremes(op):
        with device:
            reduced = hvd.allreduce(tensor([float(v) for v in part["extremes"]]), op=op)
        return [repr(v) for v in reduced.numpy().tolist()]

    first, step, count = part["large"]
    summed, gathered, sent = all_three([float(v) for v in part["values"]])
    large = all_three([float((first + step * i) % 65536) / 8 for i in range(count)])
    large = [hashlib.sha256(array.array("f", values).tobytes()).hexdigest() for values in large]
    if part["calls"]:
        large.append(vast(hvd, module, tensor, device, part))
    settings = {"pace": max(pace(hvd, tensor, device, n) for n in (1, count)), "stalled": stalled(hvd, framework)} if part["settings"] else {}
    asked.report(
        case="collectives", rank=hvd.rank(), size=hvd.size(), place=[int(getattr(hvd, name)()) for name in PLACE], allreduce=summed, allgather=gathered, broadcast=sent,
        extremes=extremes(hvd.Sum), averages=extremes(hvd.Average), large=large,
        more=more(hvd, module, tensor, device, part), refused=refused(hvd, module, tensor, device), changed=touched + changed(), **settings,
    )


def unchanged(name, tensor, values):
    """Note a collective that wrote over its input."""
    if tensor.numpy().tolist() != values and "the input of " + name not in touched:
        touched.append("the input of " + name)


def more(hvd, module, tensor, device, part):
    """What jobs use less often: other operations, types, factors and uneven parts.

    Older releases have no Min, Max, Product and reducescatter. The factor of a type makes
    values that need all of its bits.
    """
    said = {}

    def call(name, function, kind, count=None, /, **options):
        factor = 1 if name == "Product" else part["factors"].get(kind, 1)
        with device:
            mine = tensor([v * factor for v in part["small"][:count]], dtype=getattr(module, kind))
            values = mine.numpy().tolist()
            result = function(mine, **options)
        unchanged(name, mine, values)
        if isinstance(result, tuple):
            result, received = result
            said["received of %s" % kind] = received.numpy().tolist()
        said["%s of %s" % (name, kind)] = result.numpy().tolist()

    with device:
        splits = tensor(part["splits"], dtype=module.int32)
    for kind in part["reduced"]:
        for op in ("Sum", "Min", "Max", "Product"):
            if hasattr(hvd, op):
                call(op, hvd.allreduce, kind, op=getattr(hvd, op))
    for kind in part["summed"]:
        call("Sum", hvd.allreduce, kind, op=hvd.Sum)
    if hasattr(hvd, "reducescatter"):
        for kind in ("float32", "float64"):
            call("reducescatter", hvd.reducescatter, kind, op=hvd.Sum)
    for kind in part["moved"]:
        call("allgather", hvd.allgather, kind, hvd.rank() + 1)
        call("alltoall", hvd.alltoall, kind, splits=splits)
        call("broadcast", hvd.broadcast, kind, root_rank=part["root"])
    if part["calls"]:
        said["calls of float32"] = [many(hvd, tensor, device, i, part["values"][i % len(part["values"])]) for i in range(part["calls"])]
        said["together of float32"] = together(hvd, tensor, device, part["values"], part["together"])
        if hasattr(hvd, "barrier"):
            said["waits at a barrier"] = waits(hvd)
        said["growth"] = [growth(hvd, tensor, device, *calls) for calls in part["repeats"]]
    said["Sum of four dimensions"] = wide(hvd, module, tensor, device, float(part["small"][0]))
    said["overflow of float16"] = overflow(hvd, module, tensor, device)
    said["factors of one name"] = scaled(hvd, tensor, device, float(part["small"][0]), part["scales"])
    call("Average", hvd.allreduce, "float64", op=hvd.Average)
    call("scaled Sum", hvd.allreduce, "float64", op=hvd.Sum, prescale_factor=0.5)
    for group in sets:
        if group.included():
            said["place in a process set"] = [group.rank(), group.size()]
            call("Sum in a process set", hvd.allreduce, "float32", op=hvd.Sum, name="of.a.set", process_set=group)
            call("broadcast in a process set", hvd.broadcast, "float32", root_rank=2, name="from.a.set", process_set=group)
    return said


def vast(hvd, module, tensor, device, part):
    """The digest of the sum of a tensor as of an embedding, which repeats some values."""
    values = [float(v) for v in part["values"]]
    with device:
        mine = module.tile(tensor(values), [part["vast"]])
        summed = hvd.allreduce(mine, op=hvd.Sum, name="vast").numpy()
    unchanged("a vast sum", mine[-len(values):], values)
    return hashlib.sha256(summed.tobytes()).hexdigest()


def wide(hvd, module, tensor, device, factor):
    """The sum of the weights of a convolution.

    Those of torch do not lie in a row, as after a transposition. Horovod may refuse such
    tensors, but not take them as if they did.
    """
    with device:
        mine = tensor([i * factor for i in range(54)])
        if not hasattr(mine, "permute"):
            return module.reshape(hvd.allreduce(module.reshape(mine, (2, 3, 3, 3)), op=hvd.Sum, name="wide"), [-1]).numpy().tolist()
        mine = mine.reshape(3, 3, 3, 2).permute(3, 2, 1, 0)
        try:
            summed = hvd.allreduce(mine, op=hvd.Sum, name="strided")
        except ValueError:
            summed = hvd.allreduce(mine.contiguous(), op=hvd.Sum, name="wide")
        return summed.permute(3, 2, 1, 0).reshape(-1).numpy().tolist()


def overflow(hvd, module, tensor, device):
    """The sums that float16 does not hold, by which a scaler of gradients finds its scale. JSON has no infinity."""
    with device:
        summed = hvd.allreduce(tensor([60000.0, -60000.0, math.inf, 1.0], dtype=module.float16), op=hvd.Sum, name="overflow")
    return [0.0 if math.isnan(v) else max(-1e9, min(1e9, v)) for v in summed.numpy().tolist()]


def scaled(hvd, tensor, device, value, factors):
    """The sums of calls with one name and these factors: Horovod remembers what it answered to a name."""
    with device:
        return [hvd.allreduce(tensor([value]), op=hvd.Sum, name="scaled", prescale_factor=f).numpy().tolist()[0] for f in factors]


def waits(hvd):
    """Whether this rank waits at a barrier for rank 1, which is late."""
    begun = time.monotonic()
    if hvd.rank() == 1:
        time.sleep(1)
    hvd.barrier()
    return [float(time.monotonic() - begun > 0.5)]


def many(hvd, tensor, device, i, value):
    """The sum of one of many calls."""
    with device:
        return hvd.allreduce(tensor([float(value + i)]), op=hvd.Sum, name="call.%d" % i).numpy().tolist()[0]


def together(hvd, tensor, device, values, count):
    """The sums of a group, and of tensors that the ranks name in different orders where Horovod has such calls.

    The factor of every second of the latter is a half, so two in a row are no one call.
    """
    with device:
        group = [tensor([float(values[i % len(values)] + i)]) for i in range(count)]
        sums = [summed.numpy().tolist()[0] for summed in hvd.grouped_allreduce(group, op=hvd.Sum)]
        for i, mine in enumerate(group):
            unchanged("a group", mine, [float(values[i % len(values)] + i)])
    if not hasattr(hvd, "allreduce_async"):
        return sums
    order = range(count) if hvd.rank() == 0 else reversed(range(count))
    handles = {i: hvd.allreduce_async(group[i], op=hvd.Sum, name="other.%d" % i, prescale_factor=1.0 if i % 2 else 0.5) for i in order}
    return sums + [hvd.synchronize(handles[i]).numpy().tolist()[0] for i in range(count)]


def growth(hvd, tensor, device, count, calls):
    """The MiB by which collectives of a tensor make this process larger, after as many others."""
    with device:
        mine = tensor([1.0] * count)
    sizes = []
    for _ in range(2):
        for _ in range(calls):
            with device:
                hvd.allreduce(mine, op=hvd.Sum, name="memory")
                hvd.allgather(mine, name="memory.gathered")
        with open("/proc/self/statm") as pages:
            sizes.append(int(pages.read().split()[1]) * resource.getpagesize() / 2**20)
    return sizes[1] - sizes[0]


def refused(hvd, module, tensor, device):
    """The differences between ranks that are an error."""
    rank, one = hvd.rank(), tensor([1.0])
    calls = {
        "lengths": lambda name: hvd.allreduce(tensor([1.0] * (1 + rank)), op=hvd.Sum, name=name),
        "types": lambda name: hvd.allreduce(tensor([1.0], dtype=module.float64 if rank else module.float32), op=hvd.Sum, name=name),
        "operations": lambda name: hvd.allreduce(one, op=hvd.Min if rank else hvd.Sum, name=name),
        "factors": lambda name: hvd.allreduce(one, op=hvd.Sum, prescale_factor=1.0 + rank, name=name),
        "roots": lambda name: hvd.broadcast(one, root_rank=rank, name=name),
        "shapes": lambda name: hvd.allreduce(tensor([[1.0, 1.0]] if rank else [[1.0], [1.0]]), op=hvd.Sum, name=name),
        "lengths of a broadcast": lambda name: hvd.broadcast(tensor([1.0] * (1 + rank)), root_rank=0, name=name),
        "types of an allgather": lambda name: hvd.allgather(tensor([1.0], dtype=module.float64 if rank else module.float32), name=name),
    }
    errors = []
    for name, call in calls.items():
        try:
            with device:
                call("other." + name)
        except Exception:  # each framework has its own
            errors.append(name)
    return errors


def pace(hvd, tensor, device, count):
    """How many cycles of Horovod the fastest of some allreduces takes.

    A cycle is measured too: a busy host sleeps longer.
    """
    best = math.inf
    with device:
        mine = tensor([1.0] * count)
    for _ in range(8):
        start = time.monotonic()
        time.sleep(float(os.environ["HOROVOD_CYCLE_TIME"]) / 1000)
        slept = time.monotonic()
        with device:
            hvd.allreduce(mine, op=hvd.Sum)
        best = min(best, (time.monotonic() - slept) / (slept - start))
    return best


def stalled(hvd, framework):
    """Whether the log of this rank names rank 1 while the others wait for it.

    Only rank 0 writes this warning. The others wait until it has, or gives up. The
    operations have names: those that Horovod makes for torch count the operations of a
    rank, which differ while rank 1 is late. No name occurs twice, so that no answer comes
    from Horovod's cache.
    """
    def call(function, value):
        _, tensor, device = tensors(framework)
        with device:
            return function(tensor([value])).numpy().tolist()

    late = threading.Thread(target=call, args=(lambda t: hvd.allgather(t, name="late"), 1.0))
    kept = os.dup(2)
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 2)
        if hvd.rank() != 1:
            late.start()
        for attempt in range(200):
            time.sleep(float(os.environ["HOROVOD_STALL_CHECK_TIME_SECONDS"]) / 10)
            named = re.search(rb"^1: \[", os.pread(log.fileno(), 1 << 20, 0), re.MULTILINE) is not None
            if sum(call(lambda t: hvd.allreduce(t, op=hvd.Sum, name=f"seen.{attempt}"), float(named))) > 0:
                break
        os.dup2(kept, 2)
    if hvd.rank() == 1:
        late.start()
    late.join()
    return named


def tensors(framework):
    """The framework, what makes a tensor, and where it lies."""
    if framework == "tensorflow":
        import tensorflow as tf

        return tf, tf.constant, tf.device("/cpu:0")
    import torch

    return torch, torch.tensor, contextlib.nullcontext()


if __name__ == "__main__":
    import asked
    import process

    os.environ.update(asked.part["settings"] or {})
    differences = process.differences(sys.argv[1])
    module = importlib.import_module(sys.argv[1])
    if len(asked.part["splits"]) > 2:
        sets.append(module.ProcessSet([0, 2]))
        module.init(process_sets=sets)
    else:
        module.init()
    report(module, sys.argv[1].rsplit(".", 1)[1], asked.part, differences)
    asked.end()
