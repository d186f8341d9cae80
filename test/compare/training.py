"""Trains a small transformer with Horovod, on batches that do not depend on the number of ranks.

    horovodrun -np 4 -H localhost:4 python test/compare/training.py [steps]

Prints one line of JSON with the loss of each step over the whole batch, and the milliseconds
of a step, the median. One rank and several must print the same losses, except for rounding:
compare the lines of two runs with `python test/compare/training.py --equal ONE FOUR`.
"""
import json
import re
import statistics
import sys
import time

WIDTH, HEADS, LAYERS, WORDS, LENGTH, BATCH = 512, 8, 4, 1000, 128, 64
TOLERANCE = 2e-3  # of the loss: sums in another order differ by less


def equal(one, many):
    # horovodrun begins each line with the rank.
    first, second = (json.loads(re.search(r"{.*}", open(name).read()).group()) for name in (one, many))
    pairs = list(zip(first["loss"], second["loss"], strict=True))
    worst = max(abs(a - b) / abs(a) for a, b in pairs)
    learned = pairs[-1][0] < 0.8 * pairs[0][0]
    print(f"{first['ranks']} and {second['ranks']} ranks: {len(pairs)} losses from {pairs[0][0]:.4f} to {pairs[-1][0]:.4f} and {pairs[-1][1]:.4f}, at most {worst:.1e} apart")
    return worst <= TOLERANCE and learned


def train(steps):
    import horovod.torch as hvd
    import torch
    from torch import nn

    hvd.init()
    torch.cuda.set_device(hvd.local_rank())
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, LAYERS), nn.Linear(WIDTH, WORDS)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)

    numbers = torch.Generator().manual_seed(2)
    own = slice(hvd.rank() * BATCH // hvd.size(), (hvd.rank() + 1) * BATCH // hvd.size())
    losses, times = [], []
    for _ in range(steps):
        words = torch.randint(WORDS, (BATCH, LENGTH), generator=numbers)[own].cuda()
        torch.cuda.synchronize()
        begun = time.perf_counter()
        optimizer.zero_grad()
        # The model learns to name the word after the one that it sees.
        loss = nn.functional.cross_entropy(model(words).flatten(0, 1), ((words + 1) % WORDS).flatten())
        loss.backward()
        optimizer.step()
        torch.cuda.synchronize()
        times.append(1000 * (time.perf_counter() - begun))
        losses.append(hvd.allreduce(loss.detach(), name="loss").item())
    if hvd.rank() == 0:
        print(json.dumps({"ranks": hvd.size(), "gpu": torch.cuda.get_device_name(), "loss": losses, "ms": round(statistics.median(times), 3)}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--equal"]:
        sys.exit(not equal(*sys.argv[2:]))
    train(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
