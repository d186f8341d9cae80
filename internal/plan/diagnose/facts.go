package diagnose

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/files/wheel"
)

// Facts visits the facts of a library, one per line:
//
//	soname: libnccl.so.2     its own name, if it has one
//	needs: libcudart.so.12   DT_NEEDED
//	runpath: /usr/lib        a directory of DT_RUNPATH or DT_RPATH
//	floor: GLIBC_2.38        the highest required version of a symbol namespace
//	device: sm_90            GPU code inside; compute_90 is PTX, none means no GPU code
//	undefined: ibv_reg_mr    a non-weak symbol required from another library
//	exports: ncclGetVersion  an exported symbol
//	text: NCCL version 2.29  a printable constant
func Facts(ctx context.Context, r io.ReaderAt, visit func(string)) error {
	f, err := elf.Read(r)
	if err != nil {
		return err
	}
	targets, err := elf.DeviceTargets(r)
	if err != nil {
		return err
	}
	say := func(what string, values ...string) {
		for _, v := range values {
			if ctx.Err() != nil {
				return // Facts returns the error
			}
			visit(what + ": " + v)
		}
	}
	if f.Soname != "" {
		say("soname", f.Soname)
	}
	say("needs", f.Needed...)
	say("runpath", slices.Concat(f.Rpath, f.Runpath)...)
	for _, namespace := range slices.Sorted(maps.Keys(f.Floors)) {
		say("floor", namespace+"_"+f.Floors[namespace])
	}
	for _, t := range targets {
		say("device", t.String())
	}
	if len(targets) == 0 {
		say("device", "none")
	}
	for _, s := range f.Undefined {
		if !s.Weak {
			say("undefined", s.Name)
		}
	}
	for _, s := range f.Exported {
		say("exports", s.Name)
	}
	return errors.Join(elf.EachText(r, func(text string) { say("text", text) }), ctx.Err())
}

// wheelFacts visits the facts of a wheel itself, without those of its libraries:
//
//	distribution: horovod
//	version: 0.28.1+rocm5.7
//	tag: cp311-cp311-linux_x86_64
//	file: horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so
func wheelFacts(w *wheel.Wheel, visit func(string)) {
	visit("distribution: " + w.Name.Distribution)
	visit("version: " + w.Name.Version)
	for _, tag := range w.Name.Tags() {
		visit("tag: " + tag)
	}
	for _, f := range w.Files {
		visit("file: " + f.Name)
	}
}

// promisedGlibc returns the lowest glibc promised by the platform tags of a wheel, and
// its tag. Both are "" if no tag promises one.
func promisedGlibc(platform string) (glibc, tag string) {
	for t := range strings.SplitSeq(platform, ".") {
		v, _ := wheel.Glibc(t)
		if v != "" && (glibc == "" || elf.CompareVersions(v, glibc) < 0) {
			glibc, tag = v, t
		}
	}
	return glibc, tag
}
