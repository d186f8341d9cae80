package diagnose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"builder/internal/diagnose"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "build.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The lines are those that the tools print (Horovod 0.28.1, g++ 14, CMake 3.31,
// NCCL 2.22.3).
func TestLog(t *testing.T) {
	for name, line := range map[string]string{
		"findhip":          `  Unknown CMake command "hip_add_library".`,
		"rccl-header":      `nccl_operations.h:30:10: fatal error: rccl.h: No such file or directory`,
		"gcc13-includes":   `horovod/common/common.h:343:18: error: 'logic_error' is not a member of 'std'`,
		"flatbuffers-span": `stl_emulation.h:549:12: error: assignment of read-only member 'flatbuffers::span<T, Extent>::count_'`,
		"torch-cxx17":      `#error You need C++17 to compile PyTorch`,
		"verbs":            `undefined symbol: ibv_dereg_mr`,
		"no-network":       `OSError: [Errno 101] Network is unreachable`,
	} {
		d := diagnose.Log(write(t, "-- Configuring\n"+line+"\nmake: *** [all] Error 2\n"))
		if d == nil || d.Name != name {
			t.Errorf("%s: got %v", name, d)
			continue
		}
		if hint := d.Hint(); !strings.Contains(hint, d.Remedy) || !strings.Contains(hint, d.Source) {
			t.Errorf("%s: the hint lacks remedy or source: %s", name, hint)
		}
	}
}

func TestLogOfNothingKnown(t *testing.T) {
	if d := diagnose.Log(write(t, "all is well\n")); d != nil {
		t.Errorf("got %v", d.Name)
	}
	if d := diagnose.Log("/does/not/exist"); d != nil {
		t.Errorf("got %v", d.Name)
	}
}

func TestMeaningfulFindsTheCauseFarAboveTheEnd(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "compiling %d\n", i)
	}
	log.WriteString("CMake Error at CMakeLists.txt:21 (hip_add_library):\n")
	for i := range 60 {
		fmt.Fprintf(&log, "noise %d\n", i)
	}
	got := diagnose.Meaningful(write(t, log.String()), nil)
	if !strings.HasPrefix(got[0], "CMake Error") || got[len(got)-1] != "noise 59" || len(got) > 15 {
		t.Errorf("got %q", got)
	}
}

func TestMeaningfulFallsBack(t *testing.T) {
	got := diagnose.Meaningful(write(t, "quiet\n"), []string{"a", "b"})
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %q", got)
	}
}

func TestLongLinesAreBounded(t *testing.T) {
	got := diagnose.Meaningful(write(t, "error: "+strings.Repeat("x", 1<<20)+"\nend\n"), nil)
	if len(got) != 2 || len(got[0]) > 64<<10 {
		t.Errorf("got %d lines, the first of %d bytes", len(got), len(got[0]))
	}
}

func TestKnownNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range diagnose.Known() {
		if seen[d.Name] || d.Why == "" || d.Remedy == "" || d.Source == "" {
			t.Errorf("%s: named twice, or something is missing", d.Name)
		}
		seen[d.Name] = true
	}
}
