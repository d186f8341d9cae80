package gate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/elf"
	"builder/internal/verdict"
)

func TestWantedOf(t *testing.T) {
	got := wantedOf(&elf.File{Needed: []string{"libc.so.6"}, Undefined: []elf.Symbol{
		{Name: "memcpy", Version: "GLIBC_2.14", Library: "libc.so.6"}, {Name: "absent", Weak: true}, {Name: "ncclSend"},
	}})
	want := wanted{[]string{"libc.so.6"}, [][2]string{{"memcpy", "GLIBC_2.14"}, {"ncclSend", ""}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The script is given lists, not null.
func TestNothingWantedIsAList(t *testing.T) {
	if got, err := json.Marshal(wantedOf(&elf.File{})); err != nil || string(got) != `{"needed":[],"symbols":[]}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestResolved(t *testing.T) {
	r := resolved{
		Unloaded: map[string]string{"libb.so": "not found", "liba.so": "too old"},
		Missing:  []string{"y", "x@V_1"}, Found: map[string]int{"libm.so.6": 2, "libc.so.6": 7},
	}
	want := []string{
		"x.so needs liba.so, which cannot be loaded: too old", "x.so needs libb.so, which cannot be loaded: not found",
		"x.so wants 2 symbols that none of its libraries has: x@V_1 y",
	}
	if diff := cmp.Diff(want, r.faults("x.so")); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if got, want := r.evidence("x.so", 9), "x.so: all 9 symbols found, 7 in libc.so.6, 2 in libm.so.6"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if faults := (resolved{}).faults("x.so"); faults != nil {
		t.Errorf("%q", faults)
	}
}

// A library that computes and calls nobody wants nothing: that was seen, in the
// symbols that it offers.
func TestALibraryThatStandsAlone(t *testing.T) {
	s := horovodROCm()
	s.library().Undefined = nil
	for _, v := range s.verdicts(t) {
		if v.Gate == "elf-symbols" && (v.Status != verdict.Pass || !strings.Contains(v.Evidence, "wants no symbol")) {
			t.Errorf("%+v", v)
		}
	}
}

func TestListed(t *testing.T) {
	names := []string{"a", "b", "c"}
	for n, want := range map[int]string{1: "a and 2 more", 2: "a b and 1 more", 3: "a b c", 4: "a b c"} {
		if got := listed(names, n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
