package wheel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/test/kit/check"
	"builder/test/kit/must"
)

// installed returns the files an installer created from a wheel, by name, or nil if it
// refused the wheel. It leaves out the installer's own records in .dist-info.
func installed(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(name, info) && !strings.HasSuffix(name, "METADATA") || name == ".lock" {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(text)
		return err
	})
	check.That(t, err == nil, "%v", err)
	return files
}

// byPip installs all cases, and returns the result of each.
func byPip(t *testing.T, wheels string) map[string]map[string]string {
	t.Helper()
	to := t.TempDir()
	cmd := exec.Command("python3", "testdata/install.py", wheels, to)
	cmd.Env = append(os.Environ(), "PYTHONWARNINGS=ignore", "PIP_ROOT_USER_ACTION=ignore")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var took map[string]bool
	if err == nil {
		err = json.Unmarshal(out, &took)
	}
	must.Hold(t, err == nil, "%v\n%s", err, stderr.String())
	all := map[string]map[string]string{}
	for name, ok := range took {
		if ok {
			all[name] = installed(t, filepath.Join(to, name))
		}
	}
	return all
}

func byUV(t *testing.T, uv, wheel string) map[string]string {
	t.Helper()
	to := t.TempDir()
	cmd := exec.Command(uv, "pip", "install", "--quiet", "--offline", "--no-config", "--no-index", "--no-deps", "--no-cache", "--target", to, wheel)
	if cmd.Run() != nil {
		return nil
	}
	return installed(t, to)
}

// ours reads all files of a wheel. It returns nil if the wheel or a member is refused.
func ours(t *testing.T, path string) map[string]string {
	t.Helper()
	w, err := Open(path)
	if err != nil {
		return nil
	}
	defer w.Close()
	files := map[string]string{}
	for _, f := range w.Files {
		text, err := w.ReadFile(f.Name, 1<<20)
		if err != nil {
			return nil
		}
		if !strings.HasPrefix(f.Name, info) || strings.HasSuffix(f.Name, "METADATA") {
			files[f.Name] = string(text)
		}
	}
	return files
}

// This package refuses every wheel that pip and uv install differently or that one of
// them refuses. For an accepted wheel, both install the same bytes. All three accept
// the output of common wheel writers.
func TestInstallersAgreeOnWhatIsTaken(t *testing.T) {
	if out, err := exec.Command("python3", "-m", "pip", "--version").CombinedOutput(); err != nil {
		t.Skipf("no pip: %s", out)
	}
	uv, err := exec.LookPath("uv")
	if err != nil {
		t.Log("no uv in PATH: pip alone is asked")
	}
	wheels, cases := t.TempDir(), map[string]zipCase{}
	for i, c := range append(zipCases(), zipCase{"bytes behind what is compressed", func(h *handMade) {
		h.members[0].padding = []byte("PK\x07\x08")
	}, "follow the end"}) {
		h := byHand()
		c.change(&h)
		key := fmt.Sprintf("%03d", i)
		cases[key] = c
		dir := filepath.Join(wheels, key)
		must.Succeed(t, os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, oracleName), h.bytes(), 0o600))
	}
	pip := byPip(t, wheels)
	differ := 0
	for _, key := range slices.Sorted(maps.Keys(cases)) {
		c, path := cases[key], filepath.Join(wheels, key, oracleName)
		theirs := []map[string]string{pip[key]}
		if uv != "" {
			theirs = append(theirs, byUV(t, uv, path))
		}
		own := ours(t, path)
		check.That(t, (own != nil) == (c.says == ""), "%s: taken %v", c.name, own != nil)
		for i, their := range theirs {
			same := their != nil && maps.Equal(own, their)
			check.That(t, own == nil || same, "%s: here it is %q, for installer %d %q", c.name, own, i, their)
		}
		if uv != "" && (theirs[0] == nil) != (theirs[1] == nil) || theirs[0] != nil && !maps.Equal(theirs[0], theirs[len(theirs)-1]) {
			differ++
		}
	}
	t.Logf("pip and uv differ in %d of %d", differ, len(cases))
	check.That(t, uv == "" || differ >= 5, "pip and uv differ in %d of %d: the hostile ones are not hostile", differ, len(cases))
}

const oracleName = "horovod-0.28.1+rocm5.7-py3-none-any.whl"
