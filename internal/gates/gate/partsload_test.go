package gate

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// The program sees the files that a process maps, whatever the module prints.
func TestPartsLoadProgram(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("needs python3")
	}
	libm, err := filepath.Glob("/lib/*/libm.so.6")
	if err != nil || len(libm) == 0 {
		t.Skip("needs a library to map")
	}
	data, err := os.ReadFile(libm[0])
	must.Succeed(t, err)
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
		return path
	}
	one, two := put("libnccl.so.2", string(data)), put("torch.libs/libnccl-0a1b2c3d.so.2", string(data)+"\n")
	plugin := put("libnccl-net.so", string(data)+"\n\n")
	load := func(paths ...string) string {
		return fmt.Sprintf("import ctypes\nfor p in %q.split():\n    ctypes.CDLL(p)\n", strings.Join(paths, " "))
	}
	put("right.py", load(one))
	put("noisy.py", "import os, sys\nsys.stdout.write('== imported\\r50%'); sys.stdout.flush(); os.write(1, b'\\xff')\n"+load(one))
	put("twice.py", load(one, two))
	put("plugged.py", load(one, plugin))
	put("nothing.py", "")
	put("broken.py", "import no_such_module\n")
	program := put("partsload.py", script("partsload.py"))
	for module, want := range map[string][]string{
		"right": {one}, "noisy": {one}, "twice": {one, two}, "plugged": {one}, "nothing": nil, "broken": nil,
	} {
		cmd := exec.CommandContext(t.Context(), python, program, "right=libnccl.so.2", module+"=libnccl.so.2")
		cmd.Env = append(os.Environ(), "PYTHONPATH="+dir)
		var errors strings.Builder
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if (err != nil) != (module == "broken") {
			t.Errorf("%s: %v\n%s%s", module, err, out, errors.String())
			continue
		}
		_, second, _ := strings.Cut(string(out), "== imported "+module+"\n")
		if module == "right" {
			_, second, _ = strings.Cut(second, "== imported right\n")
		}
		var got []string
		for line := range strings.Lines(second) {
			got = append(got, strings.Split(line, "\t")[1])
		}
		check.That(t, fmt.Sprint(got) == fmt.Sprint(want), "%s: maps %v, want %v", module, got, want)
	}
}
