"""Times a training step with Horovod and with torch's DDP, in turn, on the same GPUs.

    horovodrun -np 2 -H localhost:2 python test/compare/throughput.py [rounds]

Prints one line of JSON: the milliseconds of a step, the median of each round. The model
has 101 million parameters, so a step reduces 403 MB of float32 gradients.
"""
import json
import os
import statistics
import sys
import time

import horovod.torch as hvd
import torch
from torch.nn.parallel import DistributedDataParallel

WIDTH, LAYERS, BATCH, WARMUP, STEPS = 4096, 6, 256, 10, 50

hvd.init()
torch.cuda.set_device(hvd.local_rank())
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK=str(hvd.rank()), WORLD_SIZE=str(hvd.size()))
torch.distributed.init_process_group("nccl")


def network():
    torch.manual_seed(1)
    layers = [m for _ in range(LAYERS) for m in (torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU())]
    return torch.nn.Sequential(*layers).cuda()


def with_horovod():
    model = network()
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return model, hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())


def with_ddp():
    model = DistributedDataParallel(network(), device_ids=[hvd.local_rank()])
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def median_step(model, optimizer):
    x = torch.randn(BATCH, WIDTH, device="cuda")
    times = []
    for step in range(WARMUP + STEPS):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        torch.cuda.synchronize()
        if step >= WARMUP:
            times.append(1000 * (time.perf_counter() - begun))
    return round(statistics.median(times), 3)


contenders = {"horovod": with_horovod(), "ddp": with_ddp()}
medians = {name: [] for name in contenders}
for turn in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5):
    for name in sorted(contenders, reverse=turn % 2 == 1):
        medians[name].append(median_step(*contenders[name]))
if hvd.rank() == 0:
    print(json.dumps({"ranks": hvd.size(), "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "ms": medians}))
torch.distributed.destroy_process_group()
