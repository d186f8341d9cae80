package stack

import (
	"strings"
	"testing"

	"builder/internal/files/inspect"
)

// part returns a part with the given facts, each in the form name=value.
func part(name, axes string, facts ...string) Part {
	p := Part{Name: name, Axes: map[string]string{}, Report: &inspect.Report{Kind: "wheel"}}
	for axis := range strings.FieldsSeq(axes) {
		key, value, _ := strings.Cut(axis, "=")
		p.Axes[key] = value
	}
	for _, fact := range facts {
		key, value, _ := strings.Cut(fact, "=")
		p.Report.Facts = append(p.Report.Facts, inspect.Fact{Name: key, Values: strings.Split(value, ","), Because: []string{"lib.so"}})
	}
	return p
}

func TestAgree(t *testing.T) {
	abi3 := part("b", "", "python=cp38")
	abi3.StableABI = true
	for name, c := range map[string]struct {
		fact  string
		parts []Part
		want  string // the seen value or the fault
		wrong bool
	}{
		"axes and bytes agree":          {"rocm", []Part{part("a", "rocm=6.1", "rocm=6"), part("b", "rocm=6.1", "rocm=none")}, "rocm is 6.1 (a, b)", false},
		"axes differ":                   {"rocm", []Part{part("a", "rocm=6.1"), part("b", "rocm=5.7")}, "rocm is 5.7 in b and 6.1 in a", true},
		"the bytes contradict the axis": {"rocm", []Part{part("a", "rocm=6.1"), part("b", "", "rocm=5")}, "b is for rocm 6.1, but its rocm is 5: lib.so", true},
		"only the bytes state it":       {"mpi", []Part{part("a", "", "mpi=openmpi"), part("b", "", "mpi=none")}, "mpi is openmpi (a)", false},
		"the bytes differ":              {"mpi", []Part{part("a", "", "mpi=openmpi"), part("b", "", "mpi=mpich")}, "mpi is mpich in b and openmpi in a", true},
		"one wheel with both values":    {"cxxabi", []Part{part("a", "", "cxxabi=cxx11,old")}, "cxxabi is cxx11 in a and old in a", true},
		"an unknown value":              {"mpi", []Part{part("a", "", "mpi=unknown"), part("b", "", "mpi=mpich")}, "mpi is mpich (b)", false},
		"no part has a value":           {"mpi", []Part{part("a", "", "mpi=none"), part("b", "")}, "mpi has no value in 2 parts", false},
		"any Python":                    {"python", []Part{part("a", "python=3.11", "python=cp311"), part("b", "", "python=py2,py3")}, "python is 3.11 (a)", false},
		"a stable ABI":                  {"python", []Part{part("a", "python=3.11", "python=cp311"), abi3}, "python is 3.11 (a)", false},
		"another Python":                {"python", []Part{part("a", "python=3.11", "python=cp310")}, "a is for python 3.11, but its python is cp310", true},
		"an axis without a fact":        {"version", []Part{{Name: "a", Axes: map[string]string{"version": "2"}}, {Name: "b"}}, "version is 2 (a)", false},
	} {
		problems, seen := Agree([]string{c.fact}, c.parts)
		if got := strings.Join(append(problems, seen...), "; "); len(problems)+len(seen) != 1 || (len(problems) == 1) != c.wrong || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, %q", name, problems, seen)
		}
	}
	if problems, _ := Agree([]string{"rocm", "mpi"}, []Part{part("a", "rocm=1", "mpi=mpich"), part("b", "rocm=2", "mpi=openmpi")}); len(problems) != 2 {
		t.Errorf("want both: %q", problems)
	}
}
