"""One rank of two: collectives on known CPU tensors, results as one line of JSON."""
import importlib
import json
import sys


def report(hvd, framework):
    rank = hvd.rank()
    values = [rank + 1.0, 10.0 * (rank + 1)]
    if framework == "tensorflow":
        import tensorflow as tf

        with tf.device("/cpu:0"):
            mine = tf.constant(values)
            summed = hvd.allreduce(mine, op=hvd.Sum)
            gathered = hvd.allgather(mine)
            sent = hvd.broadcast(mine, root_rank=1)
        results = [t.numpy().tolist() for t in (summed, gathered, sent)]
    else:
        import torch

        mine = torch.tensor(values)
        summed = hvd.allreduce(mine, op=hvd.Sum)
        gathered = hvd.allgather(mine)
        sent = hvd.broadcast(mine, root_rank=1)
        results = [t.tolist() for t in (summed, gathered, sent)]
    said = {"rank": rank, "size": hvd.size(), "allreduce": results[0], "allgather": results[1], "broadcast": results[2]}
    # print writes the end of a line on its own, and the other rank's line may come before.
    sys.stdout.write("\n%s\n" % json.dumps(said))
    sys.stdout.flush()


if __name__ == "__main__":
    module = importlib.import_module(sys.argv[1])
    module.init()
    report(module, sys.argv[1].rsplit(".", 1)[1])
