package wheeltest_test

import (
	"io/fs"
	"strings"
	"testing"

	"builder/internal/files/wheel"
	"builder/test/kit/check"
	"builder/test/kit/wheeltest"
)

func good() wheeltest.Wheel {
	return wheeltest.Wheel{
		Name: "horovod-0.28.1+rocm5.7-cp311-cp311-linux_x86_64.whl",
		Files: []wheeltest.File{
			{Name: "horovod/__init__.py", Text: "a = 1\n"},
			{Name: "horovod/with, comma.so", Text: "code", Mode: 0o755},
		},
	}
}

// The reader must accept the correct wheel and find every introduced problem.
func TestWheel(t *testing.T) {
	for name, c := range map[string]struct {
		lie  func(*wheeltest.Wheel)
		says string // text of the only problem; "" for none
	}{
		"good":       {func(*wheeltest.Wheel) {}, ""},
		"version":    {func(w *wheeltest.Wheel) { w.Version = "0.28.1" }, `has Version "0.28.1"`},
		"tags":       {func(w *wheeltest.Wheel) { w.Tags = []string{"py3-none-any"} }, `has tags ["py3-none-any"]`},
		"unlisted":   {func(w *wheeltest.Wheel) { w.Unlisted = []wheeltest.File{{Name: "a"}} }, `"a" is not in RECORD`},
		"swapped":    {func(w *wheeltest.Wheel) { w.Swapped = map[string]string{"horovod/__init__.py": "a = 2\n"} }, "has hash"},
		"omitted":    {func(w *wheeltest.Wheel) { w.Omitted = []string{"horovod/__init__.py"} }, "which is not in the wheel"},
		"record":     {func(w *wheeltest.Wheel) { w.Record = func(lines []string) []string { return lines[1:] } }, "is not in RECORD"},
		"no RECORD":  {func(w *wheeltest.Wheel) { w.Omitted = []string{w.Info() + "/RECORD"} }, "it is not in the wheel"},
		"symlink":    {func(w *wheeltest.Wheel) { w.Files[0].Mode = fs.ModeSymlink | 0o777 }, "is a symbolic link"},
		"duplicates": {func(w *wheeltest.Wheel) { w.Unlisted = w.Files[:1] }, "2 times"},
	} {
		w := good()
		c.lie(&w)
		var problems []string
		if file, err := wheel.Open(w.Write(t)); err != nil {
			problems = []string{err.Error()}
		} else {
			problems = file.Check()
			file.Close()
		}
		check.That(t, (len(problems) == 1) == (c.says != "") && strings.Contains(strings.Join(problems, "; "), c.says),
			"%s: %q", name, problems)
	}
}
