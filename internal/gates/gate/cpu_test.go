package gate

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/files/elf"
	"builder/test/kit/check"
)

func TestPlaces(t *testing.T) {
	uses := []elf.CPUUse{{Function: "a", First: 0x10}, {First: 0x20}, {Function: "c", First: 0x30}, {Function: "d", First: 0x40}}
	const three = "a (0x10), code without a name (0x20), c (0x30)"
	for n, want := range map[int]string{1: "a (0x10)", 3: three, 4: three + ", and 1 more functions"} {
		check.Same(t, fmt.Sprint(n), want, places(uses[:n]))
	}
}

func TestAllowedFeatures(t *testing.T) {
	all := allowedFeatures([]string{"x86-64-v2", "avx"})
	var names []string
	for _, f := range all {
		names = append(names, string(f))
	}
	got := strings.Join(names, " ")
	check.That(t, strings.Contains(got, "popcnt") && strings.Contains(got, string("avx")) && !strings.Contains(got, "avx2"), "got %s", got)
	check.That(t, !matches([]string{"*_avx2", "["}, "sum_avx2_end") && matches([]string{"*_avx2"}, "sum_avx2"),
		"patterns are matched otherwise than whole names")
}
