package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// installed packs the program as a wheel, as a release does, installs it with pip, and
// runs the verbs that need neither root nor an engine as nobody, without a HOME.
func installed(b *tool) {
	dir := must.Get(os.MkdirTemp("", "builder-installed-*"))(b.t)
	b.t.Cleanup(func() { os.RemoveAll(dir) })
	must.Succeed(b.t, os.Chmod(dir, 0o755))
	built := b.runJSON("out").Cells[0]
	sh := func(script string) {
		b.t.Helper()
		cmd := exec.CommandContext(b.t.Context(), "bash", "-euc", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PROGRAM="+b.path, "CELL="+filepath.Dir(filepath.Join(b.dir, built.Artifacts[0].Path)))
		out, err := cmd.CombinedOutput()
		must.Hold(b.t, err == nil, "%s: %v\n%s", script, err, out)
	}
	sources := must.Get(filepath.Abs("../../.github/python"))(b.t)
	sh(`mkdir -p dist/builder_linux_amd64_v1
		cp "$PROGRAM" dist/builder_linux_amd64_v1/builder
		python3 -m venv hatch
		hatch/bin/pip install --quiet --require-hashes -r ` + sources + `/requirements.txt
		PATH=$PWD/hatch/bin:$PATH ` + sources + `/wheels.sh 0.0.1 dist index
		python3 -m venv here
		here/bin/pip install --quiet --no-index --find-links index builder-hpc
		cp -r "$CELL" cell
		mkdir bare
		cp cell/*.whl bare
		chmod -R a+rX .`)
	packed, err := filepath.Glob(filepath.Join(dir, "index", "*.whl"))
	must.Hold(b.t, err == nil && len(packed) == 1, "%v, %v", packed, err)
	info := must.Get(os.Stat(packed[0]))(b.t)
	check.That(b.t, info.Size() < 40e6, "%s has %d bytes", packed[0], info.Size())

	name, key := filepath.Base(built.Artifacts[0].Path), filepath.Join(dir, "key.pub")
	signed, bare := filepath.Join(dir, "cell", name), filepath.Join(dir, "bare", name)
	public, err := os.ReadFile(filepath.Join(b.home, "key.pem.pub"))
	must.Succeed(b.t, err, os.WriteFile(key, public, 0o644))
	log := filepath.Join(dir, "job.log")
	must.Succeed(b.t, os.WriteFile(log, []byte("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!\n"), 0o644))
	for _, c := range []struct{ command, says string }{
		{"list", "horovod"},
		{"plan horovod --rocm 5.7", "horovod-0.28.1+rocm5.7-tf2.13.0-cp311"},
		{"profile openrlhf", "RAY_EXPERIMENTAL"},
		{"patch show horovod", "findhip"},
		{"diagnose " + log, "1 error"},
		{"gate " + bare + " --expect framework=tensorflow,nccl=rccl", "expect-nccl"},
		{"show " + signed + " --trust " + key, "signed by"},
		{"verify " + signed + " --trust " + key, "pass"},
	} {
		var out bytes.Buffer
		cmd := exec.CommandContext(b.t.Context(), filepath.Join(dir, "here", "bin", "builder"), strings.Fields(c.command)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &out, &out
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		err := cmd.Run()
		check.That(b.t, err == nil && strings.Contains(out.String(), c.says), "builder %s, as nobody: %v\n%s", c.command, err, &out)
	}
}
