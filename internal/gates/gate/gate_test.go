package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// Gates run in the order of increasing need.
func TestGates(t *testing.T) {
	before := File
	seen := map[string]bool{}
	for _, g := range All() {
		check.That(t, !seen[g.Name] && g.Asks != "" && g.Remedy != "" && g.Wants != nil,
			"gate %q: named twice, or something is missing", g.Name)
		if seen[g.Name] = true; g.Needs < before {
			t.Errorf("gate %s stands behind one that needs more", g.Name)
		}
		before = g.Needs
	}
}

// A gate runs if it applies to a promise, and only then.
func TestWanted(t *testing.T) {
	for _, c := range []struct {
		expect recipe.Expect
		want   string
	}{
		{recipe.Expect{}, ""},
		{recipe.Expect{Extensions: []string{"a"}}, "extension-present build-paths elf-symbols"},
		{recipe.Expect{Gates: recipe.GateSettings{"extension-present": extensionSettings{Absent: []string{"a"}}}}, "extension-present"},
		{recipe.Expect{Gates: recipe.GateSettings{"elf-needed": neededSettings{Needed: []string{"a"}}}}, "elf-needed"},
		{recipe.Expect{Gates: recipe.GateSettings{"elf-needed": neededSettings{Forbidden: []string{"a"}}}}, "elf-needed"},
		{recipe.Expect{Gates: recipe.GateSettings{"rdma": "absent"}}, "rdma"},
		{recipe.Expect{Glibc: "2.38"}, "glibc-floor"},
		{recipe.Expect{Gates: recipe.GateSettings{"cpu-isa": cpuSettings{Allowed: []string{"avx"}}}}, "cpu-isa"},
		{recipe.Expect{Gates: recipe.GateSettings{"size": "1MB..2MB"}}, "size"},
		{recipe.Expect{DeviceCode: []string{"gfx90a"}}, "device-code"},
		{recipe.Expect{Gates: recipe.GateSettings{"device-functions": functionSettings{NoKernels: filtered}}}, "device-functions"},
		{recipe.Expect{Library: "a"}, ""},
		{recipe.Expect{LibrarySays: "a"}, ""},
		{recipe.Expect{Gates: recipe.GateSettings{"archive": "a"}}, ""},
		{recipe.Expect{Library: "a", LibrarySays: "b"}, "nccl-abi nccl-load"},
		{recipe.Expect{Library: "a", Gates: recipe.GateSettings{"archive": "b"}}, "archive"},
		{recipe.Expect{Import: []string{"a"}}, "import"},
		{recipe.Expect{Frameworks: []string{"a"}}, "check-build"},
		{recipe.Expect{Gates: recipe.GateSettings{"built-flags": map[string]string{"a": "true"}}}, ""},
		{recipe.Expect{Launcher: "mpi"}, ""},
		{recipe.Expect{Gates: recipe.GateSettings{"rendezvous": "sealed"}}, "rendezvous"},
		{recipe.Expect{Behaviour: []recipe.Behaviour{{Name: "a"}}}, "behaviour"},
		{recipe.Expect{Import: []string{"a"}, Gates: recipe.GateSettings{"built-flags": map[string]string{"a": "true"}}}, "import built-flags"},
		{recipe.Expect{Import: []string{"a"}, Launcher: "mpi"}, "import launcher allreduce-2"},
		{recipe.Expect{Import: []string{"horovod.torch"}, Launcher: "mpi"}, "import launcher allreduce-2 train-step"},
		{recipe.Expect{Import: []string{"a"}, Frameworks: []string{"a"}, Gates: recipe.GateSettings{"built-flags": map[string]string{"rocm": "true"}}}, "import platform check-build built-flags"},
	} {
		var names []string
		for _, g := range Wanted(c.expect, Container) {
			names = append(names, g.Name)
		}
		want := strings.TrimSpace("wheel-format " + c.want)
		check.Same(t, fmt.Sprint(c.expect), want, strings.Join(names, " "))
	}
}

// An entry may come from anywhere. A gate whose settings cannot be read or state nothing,
// and a gate that does not exist, never pass.
func TestUnreadableSettingsAreNotMeasured(t *testing.T) {
	promises := Promises()
	for name, promise := range promises {
		if promise.Of == nil {
			delete(promises, name)
		}
	}
	promises["no-such-gate"] = recipe.Promise{}
	for name := range promises {
		for _, settings := range []any{1, map[string]any{"unknown": "x"}, []any{}, ""} {
			e := horovodROCm().expect
			e.Library = e.Extensions[0] // archive wants it too
			e.Gates[name] = settings
			if name == "built-flags" && fmt.Sprint(settings) == "map[unknown:x]" {
				continue // of the right type: a flag that the module does not have
			}
			s := horovodROCm().subject(t)
			s.Expect = e
			wanted := slices.DeleteFunc(Wanted(e, GPUs), func(g Gate) bool { return g.Name != name })
			must.Hold(t, len(wanted) == 1, "%s is not asked", name)
			v := wanted[0].Check(t.Context(), s)
			check.That(t, v.Status == verdict.NotMeasured && v.Evidence != "", "%s of %v: %+v", name, settings, v)
		}
	}
}

func TestRemedyOfAVerdict(t *testing.T) {
	g := Gate{Name: "x", Remedy: "the gate's"}
	for name, c := range map[string]struct {
		a    verdict.Verdict
		want string
	}{
		"pass":               {verdict.Passed("seen"), ""},
		"fail":               {verdict.Failed("seen"), "the gate's"},
		"fail, own remedy":   {verdict.Failed("seen").Because("its own %d", 1), "its own 1"},
		"not measured":       {verdict.Unmeasured("seen"), "not-measured never counts as a pass"},
		"not measured, own":  {verdict.Unmeasured("seen").Because("its own"), "its own"},
		"pass with a reason": {verdict.Passed("seen").Because("its own"), ""},
	} {
		g.check = func(context.Context, Subject) verdict.Verdict { return c.a }
		v := g.Check(context.Background(), Subject{})
		check.That(t, strings.Contains(v.Remedy, c.want) && (v.Remedy == "") == (c.want == "") && v.Evidence == "seen" && v.Seconds >= 0,
			"%s: %+v", name, v)
	}
}

// A file without a promise never passes, and its words tell a damaged file from a good one.
func TestFilesWithoutAPromise(t *testing.T) {
	good, damaged := Unpromised(nil), Unpromised(errors.New("zip: not a valid zip file"))
	check.That(t, good.Status != verdict.Pass && strings.Contains(good.Evidence, "has no promise") && strings.Contains(good.Remedy, "--entry"), "%+v", good)
	check.That(t, damaged.Status != verdict.Pass && strings.Contains(damaged.Evidence, "zip: not a valid zip file") && strings.Contains(damaged.Remedy, "build it again"), "%+v", damaged)
}

func TestLastLine(t *testing.T) {
	long := strings.Repeat("é", 400)
	for output, want := range map[string]string{
		"":                     "no output",
		"\n 42 \n---\n":        "no output",
		"first\nlast\n42\n":    "last",
		"ValueError: x\nlater": "ValueError: x",
		"ImportError: a\nlater\n  undefined symbol: b\nmore": "undefined symbol: b",
		long:       long,
		long + "é": long + "…",
	} {
		check.Same(t, output, want, lastLine(output))
	}
}

func TestJSONLine(t *testing.T) {
	for output, want := range map[string]string{
		"":                          "",
		"{}":                        "{}",
		"noise\n  {\"a\": 1} \r\nx": `{"a": 1}`,
		"{\"a\": 1}\n{\"b\": 2}\n":  `{"b": 2}`,
		"{\"a\": 1\n":               "",
		"\"a\": 1}\n":               "",
	} {
		check.Same(t, output, want, jsonLine(output))
	}
}

// The log has every command in the box, whatever its result.
func TestCommandsAreLogged(t *testing.T) {
	good := horovodROCm()
	good.box.answers["import"] = Result{Exit: 3, Output: "why\n"}
	s := good.subject(t)
	var log strings.Builder
	for _, w := range []io.Writer{nil, &log} {
		if s.Log = w; importModule.Check(context.Background(), s).Status != verdict.Fail {
			t.Error("an import that failed passed")
		}
	}
	want := "$ imports.py horovod.tensorflow.mpi_ops 33\nwhy\n[exit 3]\n"
	check.That(t, log.String() == want, "the log is %q, want %q", log.String(), want)
}

func TestUnknownLauncher(t *testing.T) {
	e := expect()
	e.Launcher = "jsrun"
	judged(t, allreduce2.Check(context.Background(), Subject{Expect: e, Box: &answers{}}), verdict.NotMeasured, `unknown launcher "jsrun"`)
}

// judged fails the test unless a verdict has a status, and its evidence says a text.
func judged(t *testing.T, v verdict.Verdict, want verdict.Status, says string, about ...any) {
	t.Helper()
	check.That(t, v.Status == want && strings.Contains(v.Evidence, says), "%v: want %v and %q, got %+v", about, want, says, v)
}
