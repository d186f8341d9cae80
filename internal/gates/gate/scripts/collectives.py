"""One rank: collectives on CPU tensors of its own values, reported in one line.

The part of a rank holds its values and the root of the broadcast. What is right is not
known here.
"""
import importlib
import sys


def report(hvd, framework, part):
    import asked

    def all_three(tensor):
        mine = tensor([float(v) for v in part["values"]])
        return [hvd.allreduce(mine, op=hvd.Sum), hvd.allgather(mine), hvd.broadcast(mine, root_rank=part["root"])]

    if framework == "tensorflow":
        import tensorflow as tf

        with tf.device("/cpu:0"):
            results = [t.numpy().tolist() for t in all_three(tf.constant)]
    else:
        import torch

        results = [t.tolist() for t in all_three(torch.tensor)]
    summed, gathered, sent = results
    asked.report(case="collectives", rank=hvd.rank(), size=hvd.size(), allreduce=summed, allgather=gathered, broadcast=sent)


if __name__ == "__main__":
    import asked

    module = importlib.import_module(sys.argv[1])
    module.init()
    report(module, sys.argv[1].rsplit(".", 1)[1], asked.part)
    asked.end()
