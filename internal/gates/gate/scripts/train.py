"""One rank of two: collectives, optimizer steps and grouped collectives, a report for each case.

The part of a rank holds its own data and what to try. What is right is not known here.
"""
import collections
import functools
import gc
import importlib
import math
import sys

import asked

task = asked.part
hvd = importlib.import_module(sys.argv[1])
alone = [hvd.ProcessSet([0]), hvd.ProcessSet([1])]
hvd.init(process_sets=alone)
rank = hvd.rank()
# The same start on both ranks comes from a broadcast.
start = {name: [v + rank for v in values] for name, values in task["start"].items()}
shapes = collections.OrderedDict([("matrix", (2, 2)), ("bias", (2,)), ("scale", (1,))])


def batches(passes):
    """The batches of this rank, one for each backward pass."""
    rows = task["batches"]
    for step in rows:
        size = len(step["x"]) // passes
        for i in range(passes):
            part = slice(i * size, (i + 1) * size)
            yield step["x"][part], step["y"][part]


def flat(arrays):
    values = [float(v) for a in arrays for v in a.reshape(-1)]
    if not all(map(math.isfinite, values)):
        raise ValueError("a result is no number: %s" % values)
    return values


def tensorflow_cases():
    import numpy
    import tensorflow as tf

    # AutoGraph would convert the source of Horovod and of the steps first, for seconds.
    tf.function = functools.partial(tf.function, autograph=False)
    gpus = tf.config.list_physical_devices("GPU")
    tf.config.set_visible_devices(gpus[hvd.local_rank()] if task["gpus"] else [], "GPU")
    where = "/GPU:0" if task["gpus"] else "/cpu:0"
    keras = importlib.import_module("horovod.tensorflow.keras")
    three = int(getattr(tf.keras, "__version__", "2").split(".")[0]) >= 3
    optimizers = tf.keras.optimizers
    if not three and hasattr(optimizers, "legacy"):
        optimizers = optimizers.legacy  # those that every release of Horovod wraps

    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            for name, shape in shapes.items():
                value = numpy.array(start[name], "float32").reshape(shape)
                setattr(self, name, self.add_weight(name=name, shape=shape, initializer=tf.constant_initializer(value)))

        def call(self, x):
            return self.scale * (tf.matmul(x, self.matrix) + self.bias)

    def note(t):
        said["device"] = "cuda" if "GPU" in t.device else "cpu"

    def model():
        m = Model()
        m(tf.zeros((1, 2)))
        hvd.broadcast_variables(m.variables, root_rank=0)
        return m

    def data(passes=1):
        return [(tf.constant(x), tf.constant(y)) for x, y in batches(passes)]

    def loss(m, x, y):
        return tf.reduce_mean(tf.square(m(x) - y))

    def weights(m):
        note(tf.convert_to_tensor(m.matrix))
        return flat(getattr(m, name).numpy() for name in shapes)

    def variables(m):
        return [getattr(m, name) for name in shapes]

    def taped(step_of, **options):
        """Three steps by a tape, step by step or as a graph."""
        m, optimizer = model(), optimizers.SGD(task["rate"])
        if three:
            optimizer.build(variables(m))

        def step(x, y):
            with tf.GradientTape() as tape:
                error = loss(m, x, y)
            tape = hvd.DistributedGradientTape(tape, **options)
            optimizer.apply_gradients(zip(tape.gradient(error, variables(m)), variables(m)))

        step = step_of(step)
        for x, y in data():
            step(x, y)
        return weights(m)

    def fitted(passes=1, optimizer=None, **options):
        """Three steps by Model.fit and the optimizer of Horovod."""
        m = model()
        wrapped = keras.DistributedOptimizer((optimizer or optimizers.SGD)(task["rate"]), **options)
        m.compile(optimizer=wrapped, loss="mse")
        xs, ys = zip(*batches(passes))
        size = len(xs[0])
        m.fit(numpy.array(sum(xs, [])), numpy.array(sum(ys, [])), batch_size=size, epochs=1, shuffle=False, verbose=0)
        return weights(m)

    def grouped():
        results = []
        for want in task["grouped"]:
            mine = [tf.cast(tf.reshape(tf.constant(v), s), want["type"]) for v, s in zip(want["values"], want["shapes"])]
            op = getattr(hvd, want["op"])
            with tf.device(where):
                one = hvd.allreduce(mine[0], op=op)
                all_of_them = hvd.grouped_allreduce(mine, op=op)
            note(all_of_them[0])
            results.append({
                "type": one.dtype.name, "types": [t.dtype.name for t in all_of_them],
                "one": flat([one.numpy()]), "values": [flat([t.numpy()]) for t in all_of_them],
                "shapes": [list(t.shape) for t in all_of_them],
            })
        return results

    def sparse():
        """A sparse and a dense gradient in one group, as of an embedding."""
        with tf.device(where):
            mine = tf.IndexedSlices(tf.constant([[float(task["sparse"])]]), tf.constant([rank], tf.int64), tf.constant([2, 1], tf.int64))
            dense = tf.constant([float(task["dense"])])
            out = hvd.grouped_allreduce([dense, mine], op=hvd.Average)
        note(out[0])
        return flat(tf.convert_to_tensor(t).numpy() for t in out)

    cases = collections.OrderedDict()
    cases["grouped-allreduce"] = grouped
    cases["sparse-in-a-group"] = sparse
    cases["tape"] = lambda: taped(lambda step: step)
    cases["tape-graph"] = lambda: taped(tf.function)
    cases["tape-groups"] = lambda: taped(tf.function, groups=1)
    cases["tape-alone"] = lambda: taped(tf.function, process_set=alone[rank])
    cases["optimizer"] = lambda: fitted()
    cases["optimizer-groups"] = lambda: fitted(groups=2)
    cases["optimizer-accumulates"] = lambda: fitted(2, backward_passes_per_step=2, average_aggregated_gradients=True)
    cases["optimizer-alone"] = lambda: fitted(process_set=alone[rank])
    return cases


def torch_cases():
    import torch

    where = "cpu"
    if task["gpus"]:
        where = "cuda"
        torch.cuda.set_device(hvd.local_rank())

    def note(t):
        said["device"] = t.device.type

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, shape in shapes.items():
                setattr(self, name, torch.nn.Parameter(torch.tensor(start[name]).reshape(shape)))

        def forward(self, x):
            return self.scale * (x @ self.matrix + self.bias)

    def trained(passes=1, split=False, **options):
        m = Model().to(where)
        hvd.broadcast_parameters(m.state_dict(), root_rank=0)
        # Jobs with two groups of parameters decay the weights of one.
        parameters = [{"params": [m.matrix]}, {"params": [m.bias, m.scale]}] if split else m.parameters()
        optimizer, random = torch.optim.SGD(parameters, lr=task["rate"]), torch.get_rng_state()
        optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=m.named_parameters(), backward_passes_per_step=passes, **options)
        if not torch.equal(random, torch.get_rng_state()):
            raise ValueError("DistributedOptimizer changes the state of torch's random numbers")
        for i, (x, y) in enumerate(batches(passes)):
            error = torch.mean((m(torch.tensor(x, device=where)) - torch.tensor(y, device=where)) ** 2) / passes
            error.backward()
            if i % passes == passes - 1:
                if optimizer.step(lambda: error) is not error:
                    raise ValueError("step does not call its closure")
                optimizer.zero_grad()
        note(m.matrix)
        return flat(getattr(m, name).detach().cpu().numpy() for name in shapes)

    def restored():
        """The state of an optimizer and a number, as ranks that continue a job get them from rank 0."""
        m = Model().to(where)
        optimizer, number = torch.optim.SGD(m.parameters(), lr=task["rate"], momentum=0.9), torch.tensor(start["scale"][0], device=where)
        for p in m.parameters():
            optimizer.state[p]["momentum_buffer"] = p.detach().clone()
        hvd.broadcast_optimizer_state(optimizer, root_rank=0)
        hvd.broadcast_parameters({"number": number}, root_rank=0)
        note(number)
        return flat([optimizer.state[getattr(m, name)]["momentum_buffer"].cpu().numpy() for name in shapes] + [number.cpu().numpy()])

    def grouped():
        results = []
        for i, want in enumerate(task["grouped"]):
            kind = getattr(torch, want["type"])
            mine = [torch.tensor(v, device=where).reshape(s).to(kind) for v, s in zip(want["values"], want["shapes"])]
            op = getattr(hvd, want["op"])
            one = hvd.allreduce(mine[0], op=op, name="one.%d" % i)
            all_of_them = hvd.grouped_allreduce(mine, op=op, name="grouped.%d" % i)
            note(all_of_them[0])
            results.append({
                "type": str(one.dtype)[6:], "types": [str(t.dtype)[6:] for t in all_of_them],
                "one": flat([one.cpu().numpy()]), "values": [flat([t.cpu().numpy()]) for t in all_of_them],
                "shapes": [list(t.shape) for t in all_of_them],
            })
        return results

    cases = collections.OrderedDict()
    cases["grouped-allreduce"] = grouped
    cases["optimizer"] = lambda: trained()
    cases["optimizer-groups"] = lambda: trained(groups=2)
    cases["optimizer-accumulates"] = lambda: trained(2)
    cases["optimizer-alone"] = lambda: trained(process_set=alone[rank])
    cases["optimizer-of-two-groups"] = lambda: trained(split=True)
    cases["optimizer-state"] = restored
    return cases


cases = tensorflow_cases() if sys.argv[1].endswith(".tensorflow") else torch_cases()
gc.freeze()  # no search for garbage among the objects of the framework
if task["collectives"]:
    import collectives

    collectives.report(hvd, sys.argv[1].rsplit(".", 1)[1], task["collectives"])
for name, case in cases.items():
    said = {"case": name, "rank": rank, "size": hvd.size()}
    try:
        said["grouped" if name == "grouped-allreduce" else "weights"] = case()
    except Exception as e:
        said["error"] = asked.explained(e)
    asked.report(**said)
asked.end()
