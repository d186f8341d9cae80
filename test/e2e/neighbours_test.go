package e2e

import (
	"path/filepath"
	"strings"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// neighbours repackages Ray and OpenRLHF twice and checks the behaviour of both.
func neighbours(b *tool) {
	b.want(0, "run", "ray", "--version", "2.12.0", "--rocm", "6.1", "--locked", "--rebuild", "--out", "out-ray")
	cell := b.runJSON("out-ray").Cells[0]
	check.Same(b.t, "the wheel is called", "ray-2.12.0+rocm6.1.cudavis-cp311-cp311-manylinux2014_x86_64.whl", filepath.Base(cell.Artifacts[0].Path))
	contains(b.t, b.evidence(cell.Verdicts),
		"visible-devices: it reports gpus=2 ids=0 1 set=CUDA_VISIBLE_DEVICES", "upstream's release reports gpus=2 ids=0 1 set=ROCR_VISIBLE_DEVICES",
		"import ray", "RECORD complete")

	b.want(0, "run", "openrlhf", "--rocm", "6.1", "--locked", "--rebuild", "--out", "out-openrlhf")
	cell = b.runJSON("out-openrlhf").Cells[0]
	contains(b.t, b.evidence(cell.Verdicts), "sync-backend: it reports accepts=--vllm.sync_backend default=nccl refuses=--vllm_sync_backend")
}

// setEdit is an edit passed around among users. It applies without an error and has no
// effect.
const setEdit = `edits:
  - kind: replace
    file: ray/_private/accelerators/__init__.py
    search: "        AMDGPUAcceleratorManager,\n"
    count: 1
`

// rayWithTheSetEdit builds Ray with setEdit, which removes AMD's class only from the
// set of all managers.
func rayWithTheSetEdit(b *tool) {
	const patch = "patches/ray/10-visible-devices-rocr.yaml"
	head, _, ok := strings.Cut(b.read(patch), "edits:\n")
	must.Hold(b.t, ok, "the edits of the patch have moved")
	site := b.makeSite(map[string]string{patch: head + setEdit})
	r := b.want(6, "run", "ray", "--recipes", site, "--version", "2.12.0", "--rocm", "6.1", "--out", "out-ray-set")
	contains(b.t, r.stderr, "gate behaviour: fail", "set is ROCR_VISIBLE_DEVICES, expected CUDA_VISIBLE_DEVICES")
	for _, v := range b.runJSON("out-ray-set").Cells[0].Verdicts {
		check.That(b.t, (v.Status == "pass") != (v.Gate == "behaviour"), "gate %s: %s: %s", v.Gate, v.Status, v.Evidence)
	}
}
