package gate

import (
	"context"
	"slices"

	"builder/internal/gates/device"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// The gates of this file run a library on the GPUs of this host.

var collectives = Gate{
	Name:   "nccl-tests",
	Asks:   "the promised collectives give correct results on GPUs at every size, from the promised library, no faster than the links allow",
	Remedy: "the library computes wrongly on these GPUs: read the first wrong size, and the gate device-functions",
	Needs:  GPUs,
	Wants:  wantsCollectives,
	check:  onGPUs(device.Collectives),
}

var transport = Gate{
	Name:   "transport",
	Asks:   "the GPUs communicate over the requested transport, and not silently over a slower one",
	Remedy: "find the reason in NCCL's log: no device or no libibverbs (install rdma-core), GPU Direct RDMA disabled (load nvidia_peermem), P2P disabled (ACS or an IOMMU between the GPUs), or a setting in /etc/nccl.conf",
	Needs:  GPUs,
	Wants:  wantsCollectives,
	check:  onGPUs(device.Between),
}

var busbw = Gate{
	Name:   "busbw",
	Asks:   "the library is as fast as the library it replaces, on this host, in the same minutes",
	Remedy: "compare the logs of both libraries (NCCL_DEBUG=INFO: channels, algorithms, NVLS), and the compiler and targets of the builds",
	Needs:  GPUs,
	Wants:  wantsCollectives,
	check:  onGPUs(device.Busbw),
}

func wantsCollectives(e recipe.Expect) bool { return len(e.Collectives) > 0 }

// Unused returns the verdict for requested GPUs that no gate used. It names missing
// GPUs.
func Unused(d *device.Setup) verdict.Verdict {
	v := verdict.Unmeasured("no requested gate runs the artifact on GPUs")
	v.Gate, v.Remedy = "gpus", "leave out --gpus, or name gates for GPUs with --only, and an artifact with promised collectives, libnccl.so.2 or librccl.so.1"
	if short, lacks := d.Short(); lacks {
		v.Evidence += "; " + short.Evidence
	}
	return v
}

// UsesGPUs reports whether the verdict is from a GPU gate.
func UsesGPUs(v verdict.Verdict) bool {
	return slices.ContainsFunc(All(), func(g Gate) bool { return g.Needs == GPUs && g.Name == v.Gate })
}

func onGPUs(check device.Check) func(context.Context, Subject) verdict.Verdict {
	return func(ctx context.Context, s Subject) verdict.Verdict { return check.Run(ctx, s.Device, s.Expect) }
}
