# Measures what the exchange of gradients costs: python -m torch.distributed.run
# --nproc-per-node=2 communication.py gloo
import sys, time

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile

dist.init_process_group(sys.argv[1])
gpu = dist.get_rank() % torch.cuda.device_count()
torch.cuda.set_device(gpu)
layers = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)]).cuda()
model = torch.nn.parallel.DistributedDataParallel(layers, device_ids=[gpu])
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
batch = torch.randn(256, 2048, device="cuda")


def step():
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
    torch.cuda.synchronize()


def milliseconds(n=20):
    step()
    start = time.time()
    for _ in range(n):
        step()
    return (time.time() - start) / n * 1e3


whole = milliseconds()
with model.no_sync():
    alone = milliseconds()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    for _ in range(5):
        step()
if dist.get_rank() == 0:
    print(f"a step takes {whole:.1f} ms, without the exchange {alone:.1f} ms")
    for e in seen.key_averages():
        if "gloo:" in e.key or "nccl" in e.key:
            print(f"{e.key[:60]}: {e.count} times, {e.cpu_time_total / 1e3:.1f} ms on the host, {e.device_time_total / 1e3:.1f} ms on the GPU")
dist.destroy_process_group()
