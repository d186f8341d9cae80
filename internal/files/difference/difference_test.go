package difference_test

import (
	"os"
	"path/filepath"
	"strings"
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
	a := func(text string) wheeltest.File {
		return wheeltest.File{Name: "tool/a.so", Text: "\x7fELF\x00a same text\x00" + text + "\x00"}
	}
	for name, c := range map[string]struct {
		first, second []wheeltest.File
		says          []string
	}{
		"a temporary name": {
			[]wheeltest.File{a("tmpxft_00000123_0000")},
			[]wheeltest.File{a("tmpxft_00000456_0000")},
			[]string{`tool/a.so differs: "tmpxft_00000123_0000", "tmpxft_00000456_0000": nvcc names its temporary files`},
		},
		"a time": {
			[]wheeltest.File{a("built 2026-11-21")}, []wheeltest.File{a("built 2026-11-22")}, []string{"SOURCE_DATE_EPOCH"},
		},
		"a path": {
			[]wheeltest.File{a("/tmp/aaaa/src")}, []wheeltest.File{a("/tmp/bbbb/src/longer")}, []string{"-ffile-prefix-map", "differs (31 and 38 bytes)"},
		},
		"a member": {
			[]wheeltest.File{a("x"), {Name: "tool/b.py", Text: "1"}},
			[]wheeltest.File{a("x"), {Name: "tool/c.py", Text: "1"}},
			[]string{"only the first build made tool/b.py", "only the second build made tool/c.py"},
		},
		"a text": {
			[]wheeltest.File{{Name: "tool/b.py", Text: "value = 'first'"}},
			[]wheeltest.File{{Name: "tool/b.py", Text: "value = 'other'"}},
			[]string{`tool/b.py differs: "value = 'first'", "value = 'other'"`},
		},
		"a time among texts of chance": {
			[]wheeltest.File{a("AAAA1\x00BBBB1\x00CCCC1\x00DDDD1\x00built 2026-11-21")}, []wheeltest.File{a("built 2026-11-22")},
			[]string{`: "built 2026-11-21", "AAAA1", "BBBB1", "CCCC1", "built 2026-11-22": a date`},
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
			for _, says := range c.says {
				text := strings.Join(lines, "\n")
				check.That(t, strings.Contains(text, says), "%q is not in\n%s", says, text)
			}
			text := strings.Join(lines, "\n")
			check.That(t, !strings.Contains(text, "same text"), "what is the same is told: %s", text)
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
	check.That(t, err == nil && len(lines) == 1 && strings.Contains(lines[0], `"hello earth"`), "%q, %v", lines, err)
	_, err = difference.Of(a, filepath.Join(dir, "nowhere"))
	check.That(t, err != nil, "a file that is not there was compared")
	_, err = difference.Of(write("x-1-py3-none-any.whl", "no wheel"), a)
	check.Fails(t, err, "comparing x-1-py3-none-any.whl")
}
