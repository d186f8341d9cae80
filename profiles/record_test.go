package profiles_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/internal/files/wheel"
	"builder/internal/plan/version"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// BUILDER_TEST_WHEELS names a directory with wheels of OpenRLHF and Ray, as fetched by
// `pip download --no-deps openrlhf==0.11.2`. The records must match the wheels; -update
// writes them again.
func TestRecordsAreWhatTheWheelsSay(t *testing.T) {
	dir := os.Getenv("BUILDER_TEST_WHEELS")
	if dir == "" {
		t.Skip("BUILDER_TEST_WHEELS names no directory with wheels of openrlhf and ray")
	}
	for project, read := range map[string]func(*testing.T, *wheel.Wheel) release{"openrlhf": readOpenRLHF, "ray": readRay} {
		paths, err := filepath.Glob(filepath.Join(dir, project+"-*.whl"))
		must.Hold(t, err == nil && len(paths) != 0, "%d wheels of %s, %v", len(paths), project, err)
		var all []release
		for _, path := range paths {
			w := must.Get(wheel.Open(path))(t)
			r := read(t, w)
			w.Close()
			r.Version, r.Wheel, r.SHA256 = w.Name.Version, filepath.Base(path), digest(t, path)
			all = append(all, r)
		}
		slices.SortFunc(all, newerFirst)
		text := must.Get(json.MarshalIndent(all, "", " "))(t)
		golden.Check(t, project+".json", append(text, '\n'))
	}
}

func newerFirst(a, b release) int {
	va, err1 := version.Parse(a.Version)
	vb, err2 := version.Parse(b.Version)
	if err := cmp.Or(err1, err2); err != nil {
		panic(fmt.Sprintf("a wheel's version: %v", err)) // the wheel's name was parsed with it
	}
	return version.Compare(vb, va)
}

func digest(t *testing.T, path string) string {
	t.Helper()
	f := must.Get(os.Open(path))(t)
	defer f.Close()
	sum := sha256.New()
	must.Get(io.Copy(sum, f))(t)
	return hex.EncodeToString(sum.Sum(nil))
}

var (
	// argument matches a call of add_argument up to the end of its default.
	argument = regexp.MustCompile(`add_argument\(\s*"(--[\w.]+)"(?:[^()]*?default=([^,()\s]+))?`)
	// aboutWeights matches the options about sharing weights and GPUs.
	aboutWeights = regexp.MustCompile(`sync|colocate|async`)
	noSet        = regexp.MustCompile(`RAY_EXPERIMENTAL_NOSET_(?:CUDA|ROCR|HIP)_VISIBLE_DEVICES`)
	pinned       = regexp.MustCompile(`^ray\[default\] ?==([\d.]+)$`)
)

// readOpenRLHF reads the command's parser, the pin of Ray, and the variables checked by
// OpenRLHF.
func readOpenRLHF(t *testing.T, w *wheel.Wheel) release {
	r := release{Options: map[string]string{}, NoSet: []string{}}
	for _, m := range argument.FindAllStringSubmatch(member(t, w, "openrlhf/cli/train_ppo_ray.py"), -1) {
		if aboutWeights.MatchString(m[1]) {
			r.Options[m[1]] = strings.Trim(m[2], `"`)
		}
	}
	for _, requirement := range w.Metadata["Requires-Dist"] {
		if m := pinned.FindStringSubmatch(requirement); m != nil {
			r.Ray = m[1]
		}
	}
	r.NoSet = append(r.NoSet, found(member(t, w, "openrlhf/trainer/ray/utils.py"))...)
	return r
}

// readRay reads the variables known to Ray's code for AMD GPUs. Old releases have none.
func readRay(t *testing.T, w *wheel.Wheel) release {
	return release{NoSet: append([]string{}, found(member(t, w, "ray/_private/accelerators/amd_gpu.py"))...)}
}

// found returns the variables in a text, each once.
func found(text string) []string {
	names := noSet.FindAllString(text, -1)
	slices.Sort(names)
	return slices.Compact(names)
}

// member returns the text of the file with this path ending, or "".
func member(t *testing.T, w *wheel.Wheel, end string) string {
	t.Helper()
	for _, f := range w.Files {
		if !strings.HasSuffix("/"+f.Name, "/"+end) {
			continue
		}
		r := must.Get(w.Open(t.Context(), f.Name))(t)
		defer r.Close()
		return string(must.Get(io.ReadAll(io.NewSectionReader(r, 0, 1<<20)))(t))
	}
	return ""
}
