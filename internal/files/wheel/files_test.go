package wheel_test

import (
	"os"
	"path/filepath"
	"slices"
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
	unnamed := filepath.Join(t.TempDir(), "digest")
	must.Succeed(t, os.WriteFile(unnamed, w.Bytes(), 0o600))
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

func TestParseRecord(t *testing.T) {
	got, err := wheel.ParseRecord([]byte("b.py,,\na/lib.so,sha256=LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ,5\n../../bin/x,md5=1,2\n"))
	want := []wheel.Listed{{Path: "../../bin/x"}, {"a/lib.so", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}, {Path: "b.py"}}
	check.That(t, err == nil && slices.Equal(got, want), "%+v, %v", got, err)
	for _, text := range []string{"a,b\n", "a,sha256=!,1\n", "a,,\na,,\n"} {
		_, err := wheel.ParseRecord([]byte(text))
		check.That(t, err != nil, "%q is no RECORD", text)
	}
}
