"""One rank: collectives on CPU tensors of its own values, reported in one line.

The part of a rank holds its values, the root of the broadcast, and how to make a large
tensor. What is right is not known here.
"""
import array
import contextlib
import hashlib
import importlib
import sys


# Where a rank sees itself: jobs choose its GPU and its data by these numbers.
PLACE = ("local_rank", "local_size", "cross_rank", "cross_size")


def report(hvd, framework, part):
    import asked

    def all_three(values):
        tensor, device = tensors(framework)
        with device:
            mine = tensor(values)
            results = [hvd.allreduce(mine, op=hvd.Sum), hvd.allgather(mine), hvd.broadcast(mine, root_rank=part["root"])]
            return [result.numpy().tolist() for result in results]

    def extremes():
        tensor, device = tensors(framework)
        with device:
            summed = hvd.allreduce(tensor([float(v) for v in part["extremes"]]), op=hvd.Sum)
        return [repr(v) for v in summed.numpy().tolist()]

    first, step, count = part["large"]
    summed, gathered, sent = all_three([float(v) for v in part["values"]])
    large = all_three([float((first + step * i) % 65536) / 8 for i in range(count)])
    asked.report(
        case="collectives", rank=hvd.rank(), size=hvd.size(), place=[int(getattr(hvd, name)()) for name in PLACE], allreduce=summed, allgather=gathered, broadcast=sent,
        extremes=extremes(), large=[hashlib.sha256(array.array("f", values).tobytes()).hexdigest() for values in large],
    )


def tensors(framework):
    """What makes a tensor, and where it lies."""
    if framework == "tensorflow":
        import tensorflow as tf

        return tf.constant, tf.device("/cpu:0")
    import torch

    return torch.tensor, contextlib.nullcontext()


if __name__ == "__main__":
    import asked

    module = importlib.import_module(sys.argv[1])
    module.init()
    report(module, sys.argv[1].rsplit(".", 1)[1], asked.part)
    asked.end()
