package difference_test

import (
	"os"
	"path/filepath"
	"testing"

	"builder/internal/files/difference"
	"builder/test/kit/check"
	"builder/test/kit/must"
	"builder/test/kit/wheeltest"
)

func TestWheels(t *testing.T) {
	make := func(files ...wheeltest.File) string {
		return wheeltest.Wheel{Name: "tool-1.0-py3-none-any.whl", Files: files}.Write(t)
	}
	for name, c := range map[string]struct {
		first, second []wheeltest.File
		says          []string
	}{
		"another size": {
			[]wheeltest.File{{Name: "tool/a.so", Text: "/tmp/aaaa/src"}}, []wheeltest.File{{Name: "tool/a.so", Text: "/tmp/bbbb/src/longer"}},
			[]string{"tool/a.so differs (13 and 20 bytes)"},
		},
		"a member": {
			[]wheeltest.File{{Name: "tool/b.py", Text: "1"}},
			[]wheeltest.File{{Name: "tool/c.py", Text: "1"}},
			[]string{"only the first build made tool/b.py", "only the second build made tool/c.py"},
		},
		"the same size": {
			[]wheeltest.File{{Name: "tool/b.py", Text: "value = 'first'"}},
			[]wheeltest.File{{Name: "tool/b.py", Text: "value = 'other'"}},
			[]string{"tool/b.py differs"},
		},
		"only another order and mode": {
			[]wheeltest.File{{Name: "a", Text: "1"}, {Name: "b", Text: "2"}},
			[]wheeltest.File{{Name: "b", Text: "2"}, {Name: "a", Text: "1", Mode: 0o755}},
			[]string{"the members are the same: their times, owners, modes, order or compression differ"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines, err := difference.Of(make(c.first...), make(c.second...))
			must.Succeed(t, err)
			check.Same(t, "lines", c.says, lines)
		})
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a := write("a.txz", "hello world")
	lines, err := difference.Of(a, write("same", "hello world"))
	check.That(t, err == nil && len(lines) == 0, "%q, %v", lines, err)
	lines, err = difference.Of(a, write("b", "hello earth"))
	check.That(t, err == nil && len(lines) == 1 && lines[0] == "a.txz differs", "%q, %v", lines, err)
	_, err = difference.Of(a, filepath.Join(dir, "nowhere"))
	check.That(t, err != nil, "a file that is not there was compared")
	_, err = difference.Of(write("x-1-py3-none-any.whl", "no wheel"), a)
	check.Fails(t, err, "comparing x-1-py3-none-any.whl")
}
