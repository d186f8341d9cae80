package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"builder/internal/plan/diagnose"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func TestMeaningfulFindsTheCauseFarAboveTheEnd(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "compiling %d\n", i)
	}
	log.WriteString("CMake Error at CMakeLists.txt:21 (hip_add_library):\n\n")
	for i := range 60 {
		fmt.Fprintf(&log, "noise %d\n", i)
	}
	got := diagnose.Meaningful(must.File(t, "build.log", log.String()), nil)
	check.That(t, strings.HasPrefix(got[0], "CMake Error") && got[1] == "noise 0" && got[len(got)-1] == "noise 59" && len(got) <= 15,
		"got %q", got)
}

// A build that fails in the compiler can print a harmless Traceback first.
func TestMeaningfulPrefersTheCompiler(t *testing.T) {
	log := "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'tool'\nrunning build_ext\n" + strings.Repeat("compiling\n", 40) +
		"./src/a.c:707:5: error: 'no' undeclared\n./src/a.c:707:5: note: each undeclared identifier is reported only once\nerror: command 'gcc' failed with exit code 1\n"
	got := diagnose.Meaningful(must.File(t, "build.log", log), nil)
	want := []string{"./src/a.c:707:5: error: 'no' undeclared", "./src/a.c:707:5: note: each undeclared identifier is reported only once", "error: command 'gcc' failed with exit code 1"}
	check.That(t, slices.Equal(got, want), "got %q", got)
}

func TestMeaningfulFallsBack(t *testing.T) {
	got := diagnose.Meaningful(must.File(t, "build.log", []byte("quiet\n")), []string{"a", "b"})
	check.That(t, slices.Equal(got, []string{"a", "b"}), "got %q", got)
	many := strings.Split(strings.Repeat("a ", 20), " ")
	got = diagnose.Meaningful("/does/not/exist", many)
	check.That(t, len(got) == 10, "got %q", got)
}

func TestMeaningfulCutsLongLines(t *testing.T) {
	got := diagnose.Meaningful(must.File(t, "build.log", []byte("error: "+strings.Repeat("x", 1<<20)+"\nend\n")), nil)
	check.That(t, len(got) == 2 && len(got[0]) <= 64<<10 && got[1] == "end", "got %d lines, the first of %d bytes", len(got), len(got[0]))
}
