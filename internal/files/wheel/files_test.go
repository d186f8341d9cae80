package wheel_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/files/wheel"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

func TestReadFiles(t *testing.T) {
	w := wheeltest.Wheel{Name: "x-1.0-py3-none-any.whl", Files: []wheeltest.File{{Name: "x/a.py", Text: "a"}, {Name: "x/b.py", Text: "bb"}}}
	unnamed := must.File(t, "digest", w.Bytes())
	below := func(name string) bool { return strings.HasPrefix(name, "x/") }
	for limit, want := range map[int64]map[string][]byte{
		1000: {"x/a.py": []byte("a"), "x/b.py": []byte("bb")},
		1:    {"x/a.py": []byte("a")},
	} {
		got, err := wheel.ReadFiles(unnamed, below, limit)
		diff := cmp.Diff(want, got)
		check.That(t, err == nil && diff == "", "at most %d bytes: %v\n%s", limit, err, diff)
	}
	w.Unlisted = w.Files[:1]
	for name, data := range map[string][]byte{"in the ZIP 2 times": w.Bytes(), "truncated, or not a wheel": w.Bytes()[:50]} {
		must.Succeed(t, os.WriteFile(unnamed, data, 0o600))
		got, err := wheel.ReadFiles(unnamed, below, 9)
		check.That(t, err != nil && strings.Contains(err.Error(), name), "%s: %v, %v", name, got, err)
	}
}
