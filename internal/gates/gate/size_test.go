package gate

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// The range includes both ends.
func TestSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x-1-py3-none-any.whl")
	for bytes, want := range map[int]verdict.Status{19_999: verdict.Fail, 20_000: verdict.Pass, 30_000: verdict.Pass, 30_001: verdict.Fail} {
		write(t, path, make([]byte, bytes))
		v := artifactSize.Check(t.Context(), Subject{Artifact: path, Expect: recipe.Expect{Gates: recipe.GateSettings{"size": "20KB..30KB"}}})
		judged(t, v, want, " KB, expected 20KB..30KB", bytes)
	}
	for _, band := range []string{"30KB..20KB", "20KB"} {
		judged(t, artifactSize.Check(t.Context(), Subject{Artifact: path, Expect: recipe.Expect{Gates: recipe.GateSettings{"size": band}}}), verdict.NotMeasured, "", band)
	}
	judged(t, artifactSize.Check(t.Context(), Subject{Artifact: path + "x", Expect: recipe.Expect{Gates: recipe.GateSettings{"size": "1KB..2KB"}}}), verdict.NotMeasured, "")
}

// Every pattern is checked, also after a failure. The remedy for an additional
// framework applies only if nothing else is wrong.
func TestExtensionsAreAllNamed(t *testing.T) {
	s := horovodROCm()
	s.expect.Extensions = []string{"a/*.so", "b/*.so"}
	s.expect.Gates["extension-present"] = extensionSettings{Absent: []string{"horovod/tensorflow/mpi_lib*.so", "horovod/*/mpi_lib*.so"}}
	v := extensionPresent.Check(t.Context(), s.subject(t))
	check.That(t, strings.Count(v.Evidence, "was not requested") == 2 && strings.Contains(v.Evidence, "match a/*.so") &&
		strings.Contains(v.Evidence, "match b/*.so"), "%+v", v)
	check.That(t, !strings.Contains(v.Remedy, "HOROVOD_WITHOUT"), "the remedy is for another fault: %s", v.Remedy)
	s = horovodROCm()
	s.expect.Extensions, s.expect.Frameworks = nil, nil
	s.expect.Gates["extension-present"] = extensionSettings{Absent: []string{"horovod/*/mpi_lib*.so"}}
	if v = extensionPresent.Check(t.Context(), s.subject(t)); strings.Contains(v.Remedy, "HOROVOD") || !strings.Contains(v.Remedy, "leaves the library out") {
		t.Errorf("the remedy is for Horovod: %s", v.Remedy)
	}
}

func TestSome(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: `"a"`, 3: `"a" "b" "c"`, 4: `"a" "b" "c" and 1 more`} {
		check.Same(t, fmt.Sprint(n), want, some([]string{"a", "b", "c", "d"}[:n]))
	}
}
