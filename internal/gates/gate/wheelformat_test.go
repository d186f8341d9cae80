package gate

import (
	"context"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
	"builder/test/kit/wheeltest"
)

// Files outside the package of the wheel's name are refused unless promised.
func TestWhatNobodyPromisedIsRefused(t *testing.T) {
	const info, data = "horovod-1.dist-info/", "horovod-1.data/"
	for _, c := range []struct {
		file, text string
		packages   []string
		says       string // "" for a pass
	}{
		{"horovod/x.py", "", nil, ""},
		{"horovod.py", "", nil, ""},
		{"horovod.cpython-311-x86_64-linux-gnu.so", "", nil, ""},
		{"horovod.libs/x.txt", "", nil, ""},
		{data + "scripts/horovodrun", "", nil, ""},
		{data + "headers/x.h", "", nil, ""},
		{data + "purelib/horovod/x.py", "", nil, ""},
		{data + "data/share/man/man1/horovodrun.1", "", nil, ""},
		{info + "entry_points.txt", "[console_scripts]\nhorovodrun = horovod:main\n\n[x]\npython3 = a:b\n", nil, ""},
		{"evil.pth", "", nil, "evil.pth lies outside"},
		{"horovod.pth", "", nil, "horovod.pth lies outside"},
		{"sitecustomize.py", "", nil, "sitecustomize.py lies outside"},
		{"usercustomize/__init__.py", "", nil, "usercustomize/__init__.py lies outside"},
		{"pip/__init__.py", "", nil, "pip/__init__.py lies outside"},
		{"torch/__init__.py", "", nil, "torch/__init__.py lies outside the package of the wheel's name"},
		{data + "purelib/torch/__init__.py", "", nil, "purelib/torch/__init__.py lies outside"},
		{data + "platlib/evil.pth", "", nil, "platlib/evil.pth lies outside"},
		{data + "data/etc/profile.d/x.sh", "", nil, "installs etc/profile.d below the prefix"},
		{data + "data/lib/python3.11/site-packages/evil.pth", "", nil, "installs lib/python3.11 below the prefix"},
		{data + "data/x", "", nil, "installs x below the prefix"},
		{data + "scripts/python3", "", nil, "the program python3 would hide the system's"},
		{data + "scripts/pip3.11", "", nil, "the program pip3.11"},
		{data + "scripts/sh", "", nil, "the program sh"},
		{data + "scripts/activate", "", nil, "the program activate"},
		{info + "entry_points.txt", "[console_scripts]\n  python = horovod:main\n", nil, "the program python "},
		{info + "entry_points.txt", "[ gui_scripts ]\nls=horovod:main\n", nil, "the program ls "},
		{info + "entry_points.txt", "[console_scripts] ; x\nls=horovod:main\n", nil, "which is not a group"},
		{info + "entry_points.txt", "[console_scripts]\n../ls=horovod:main\n", nil, "which does not define a program"},
		{"torch-1.data/scripts/torchrun", "", nil, "in another .data directory"},
		{data + "other/x", "", nil, "a directory of .data unknown to installers"},
		{data + "x", "", nil, "a directory of .data unknown to installers"},
		{data + "purelib/horovod/__init__.py", "", nil, "install to the same path"},
		{"torch/__init__.py", "", []string{"horovod", "torch"}, ""},
		{"horovod.pth", "", []string{"horovod", "horovod.pth"}, ""},
		{"torch/__init__.py", "", []string{"horovod"}, "torch/__init__.py lies outside the promised packages horovod"},
		{data + "scripts/python3", "", []string{"scripts/python3"}, ""},
		{data + "scripts/python3", "", []string{"horovod", "scripts/python3"}, ""},
		{data + "data/etc/profile.d/x.sh", "", []string{"data/etc"}, ""},
		{data + "data/etc/profile.d/x.sh", "", []string{"data/etc/profile.d"}, ""},
		{data + "data/etc/profile.d/x.sh", "", []string{"horovod"}, "installs etc/profile.d"},
	} {
		w := wheeltest.Wheel{
			Name:  "horovod-1-cp311-cp311-linux_x86_64.whl",
			Files: []wheeltest.File{{Name: "horovod/__init__.py"}, {Name: c.file, Text: c.text}},
		}
		v := wheelFormat.Check(context.Background(), Subject{Artifact: w.Write(t), Expect: recipe.Expect{Packages: c.packages}})
		check.That(t, (v.Status == verdict.Pass) == (c.says == "") && strings.Contains(v.Evidence, c.says),
			"%s, promised %q: %v %s, want %q", c.file, c.packages, v.Status, v.Evidence, c.says)
	}
}

// A wheel may have the name of a system program and install that program.
func TestProgramsOfTheSystem(t *testing.T) {
	for program, distribution := range map[string]string{"pip": "pip", "pip3.11": "pip", "uv": "uv", "cmake": "cmake", "mpiexec2": "mpiexec", "pythonista": "x", "horovodrun": "horovod", "shell": "x"} {
		check.That(t, !ofSystem(program, distribution), "%s of %s is refused", program, distribution)
	}
	for _, program := range []string{"python", "python3.13", "python3-config", "pip-3.11", "bash", "env", "ls", "gcc-13", "activate_this.py", "mpirun"} {
		check.That(t, ofSystem(program, "horovod"), "%s is not refused", program)
	}
}

// Thousands of problems in a RECORD give a few lines of evidence.
func TestFaultsOfAWheelAreNotEndless(t *testing.T) {
	w := wheeltest.Wheel{
		Name:  "horovod-1-py3-none-any.whl",
		Files: []wheeltest.File{{Name: "horovod/__init__.py"}},
		Record: func(lines []string) []string {
			for range 20_000 {
				lines = append(lines, strings.Repeat("x", 40)+",,\n")
			}
			return append(lines, strings.Repeat("\x01", 100_000)+",,\n")
		},
	}
	v := wheelFormat.Check(context.Background(), Subject{Artifact: w.Write(t)})
	check.That(t, v.Status == verdict.Fail && len(v.Evidence) <= 10_000 && strings.Contains(v.Evidence, " more"),
		"%v: %d bytes: %.300s", v.Status, len(v.Evidence), v.Evidence)
}
