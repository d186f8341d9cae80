package difference_test

import (
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
			[]string{"tool/a.so differs"},
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
			[]string{"the members are the same: their times, modes, order or compression differ"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			lines := must.Get(difference.OfWheels(make(c.first...), make(c.second...)))(t)
			check.Same(t, "lines", c.says, lines)
		})
	}
}

func TestNoWheel(t *testing.T) {
	path := must.File(t, "x-1-py3-none-any.whl", "no wheel")
	_, err := difference.OfWheels(path, path)
	check.Fails(t, err, "comparing x-1-py3-none-any.whl")
}
