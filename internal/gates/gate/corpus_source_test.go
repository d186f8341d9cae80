package gate

import (
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/patch"
	"builder/test/kit/check"
	"builder/test/kit/elftest"
	"builder/test/kit/wheeltest"
)

// The files of Horovod 0.28.1 that the rows change, shortened.
const (
	stockLaunch   = "import psutil\n\ndef run_commandline():\n    _run(parse_args())\n"
	patchedLaunch = "import psutil\n\ndef run_commandline():\n    _run(seal(parse_args()))\n"
	stockInit     = "from horovod.tensorflow.mpi_ops import allreduce\n"
	stockEntry    = "[console_scripts]\nhorovodrun = horovod.runner.launch:run_commandline\n"
	stockLicense  = "Apache License, Version 2.0\n"
	infoROCm      = "horovod-0.28.1+rocm5.7.tf2.13.0.dist-info/"
)

// sourced returns Horovod with the sdist of its build and one patch.
func sourced() *specimen {
	s := horovodROCm()
	s.wheel.Files = slices.DeleteFunc(s.wheel.Files, func(f wheeltest.File) bool { return strings.HasSuffix(f.Name, ".py") })
	s.wheel.Files = append(s.wheel.Files,
		wheeltest.File{Name: "horovod/__init__.py", Text: "__version__ = '0.28.1'\n"},
		wheeltest.File{Name: "horovod/runner/launch.py", Text: patchedLaunch},
		wheeltest.File{Name: "horovod/tensorflow/__init__.py", Text: stockInit},
		wheeltest.File{Name: infoROCm + "entry_points.txt", Text: stockEntry},
		wheeltest.File{Name: infoROCm + "LICENSE", Text: stockLicense})
	s.wheel.License = "Apache\n        2.0"
	s.wheel.Requires = []string{"psutil", "pytorch-lightning>=1; extra == \"spark\""}
	s.source = &original{
		entries: []member{
			file("horovod-0.28.1/setup.py", "setup()\n"),
			file("horovod-0.28.1/horovod/__init__.py", "__version__ = '0.28.1'\n"),
			file("horovod-0.28.1/horovod/runner/launch.py", stockLaunch),
			file("horovod-0.28.1/horovod/tensorflow/__init__.py", stockInit),
			file("horovod-0.28.1/horovod.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: horovod\nVersion: 0.28.1\nLicense: Apache 2.0\nLicense-Expression: UNKNOWN\nClassifier: Topic :: x\n"),
			file("horovod-0.28.1/horovod.egg-info/entry_points.txt", stockEntry+"\n"),
			file("horovod-0.28.1/horovod.egg-info/requires.txt", "psutil\ncffi\n\n[spark:python_version < \"3.8\"]\nPyTorch_lightning>=1\n"),
			file("horovod-0.28.1/LICENSE", stockLicense),
			file("horovod-0.28.1/third_party/x/LICENSE", "MIT License\n"),
		},
		patches: []patch.Patch{{Name: "seal", Edits: []patch.Edit{{
			Kind: patch.Replace, File: "horovod/runner/launch.py", Search: "_run(parse_args())", Replace: "_run(seal(parse_args()))", Count: 1,
		}}}},
	}
	return s
}

// rewrite replaces the text of a file of the wheel.
func (s *specimen) rewrite(name string, change func(string) string) {
	i := slices.IndexFunc(s.wheel.Files, func(f wheeltest.File) bool { return f.Name == name })
	s.wheel.Files[i].Text = change(s.wheel.Files[i].Text)
}

// badPython lists wheels whose Python is not that of their source, and passes every
// other gate.
func badPython() []bad {
	row := func(what, says string, change func(*specimen)) bad {
		return bad{what: what, of: sourced, change: change, gate: "python-source", says: says, do: "make each change with a patch"}
	}
	blind := func(what, says, do string, change func(*specimen)) bad {
		return bad{what: what, of: sourced, change: change, gate: "python-source", blind: true, says: says, do: do}
	}
	text := func(name string, change func(string) string) func(*specimen) {
		return func(s *specimen) { s.rewrite(name, change) }
	}
	is := func(text string) func(string) string { return func(string) string { return text } }
	more := func(name, text string) func(*specimen) {
		return func(s *specimen) { s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: name, Text: text}) }
	}
	const (
		data   = "horovod-0.28.1+rocm5.7.tf2.13.0.data/"
		absent = " is neither in the source nor made by a patch"
	)
	return []bad{
		row("a wheel with a launcher of its script", "horovod/runner/launch.py differs from the patched source from line 1 on",
			text("horovod/runner/launch.py", is("def run_commandline(): print('ok')\n"))),
		row("a wheel with three lines before its framework's module", "horovod/tensorflow/__init__.py differs from the patched source from line 1 on",
			text("horovod/tensorflow/__init__.py", func(s string) string { return "import os\nprint('{}')\nos._exit(0)\n" + s })),
		row("a wheel with a line behind its framework's module", "horovod/tensorflow/__init__.py differs from the patched source from line 2 on",
			text("horovod/tensorflow/__init__.py", func(s string) string { return s + "allreduce = lambda tensor: tensor\n" })),
		row("a wheel with one more module", "horovod/runner/extra.py"+absent, more("horovod/runner/extra.py", "")),
		row("a wheel with a module below .data", "platlib/horovod/runner/extra.py"+absent, more(data+"platlib/horovod/runner/extra.py", "")),
		row("a wheel with a module without its source", "horovod/runner/extra.pyc"+absent, more("horovod/runner/extra.pyc", "")),
		row("a wheel with a .pth file in its package", "horovod/start.pth"+absent, more("horovod/start.pth", "import horovod.runner\n")),
		row("a wheel with a module of another directory of the source", "horovod/setup.py"+absent, more("horovod/setup.py", "setup()\n")),
		row("a wheel with a program of its script", "scripts/horovodtool"+absent, more(data+"scripts/horovodtool", "#!python\n")),
		row("a wheel without its patches", "horovod/runner/launch.py differs from the patched source from line 4 on",
			text("horovod/runner/launch.py", is(stockLaunch))),
		row("a wheel with a program that starts another function", "has [console_scripts] horovodrun = horovod.other:main, which the source does not state",
			text(infoROCm+"entry_points.txt", is("[console_scripts]\nhorovodrun = horovod.other:main\n"))),
		row("a wheel with a plugin of pytest", "has [pytest11] a = horovod.other, which the source does not state",
			text(infoROCm+"entry_points.txt", func(s string) string { return s + "[pytest11]\na = horovod.other\n" })),
		row("a wheel with a second SBOM, of other contents", "sboms/other.spdx.json is an SBOM that neither the source nor builder made",
			more(infoROCm+"sboms/other.spdx.json", "{}")),
		row("a wheel with the text of another license", "LICENSE differs from the patched source from line 1 on",
			text(infoROCm+"LICENSE", is("Public domain\n"))),
		row("a wheel with one more license", "licenses/NOTICE"+absent,
			more(infoROCm+"licenses/NOTICE", "All rights reserved\n")),
		row("a wheel whose metadata state another license", `METADATA has the License "MIT", and the source has "Apache 2.0"`,
			func(s *specimen) { s.wheel.License = "MIT" }),
		row("a wheel that lost the license of its metadata", `METADATA has the License "", and the source has "Apache 2.0"`,
			func(s *specimen) { s.wheel.License = "" }),
		row("a wheel that requires a project whose name is near to that of another", `METADATA requires "psutils", which the source does not name`,
			func(s *specimen) { s.wheel.Requires[0] = "psutils" }),
		row("a wheel that lost a requirement", "METADATA does not require psutil without a condition, as the source does, and a module imports it",
			func(s *specimen) { s.wheel.Requires = s.wheel.Requires[1:] }),
		row("a wheel that requires a project only for an extra", "METADATA does not require psutil without a condition",
			func(s *specimen) { s.wheel.Requires[0] = "psutil; extra == \"spark\"" }),
		row("a wheel that requires everywhere what an old Python needs", `METADATA requires "pytorch-lightning>=1" without the condition that the source has`,
			func(s *specimen) { s.wheel.Requires[1] = "pytorch-lightning>=1" }),
		row("a wheel that requires a project for an extra of its own", `METADATA requires "spark; extra == \"spark\"", which the source does not name`,
			func(s *specimen) { s.wheel.Requires[1] = "spark; extra == \"spark\"" }),
		row("a wheel whose metadata state a license by an expression", `METADATA has the License-Expression "MIT", and the source has ""`,
			func(s *specimen) { s.wheel.License += "\nLicense-Expression: MIT" }),
		row("a wheel whose metadata list another license", `METADATA has the Classifier "License :: OSI Approved :: MIT License", and the source has ""`,
			func(s *specimen) { s.wheel.License += "\nClassifier: License :: OSI Approved :: MIT License" }),
		row("a wheel that lost its program", "lacks [console_scripts] horovodrun = horovod.runner.launch:run_commandline of the source",
			text(infoROCm+"entry_points.txt", is("[console_scripts]\n"))),
		row("a wheel with a library that hides a module", "launch.abi3.so is imported in place of horovod/runner/launch.py",
			more("horovod/runner/launch.abi3.so", string((&elftest.Library{}).Bytes()))).and("extension-present"),
		row("a wheel with a library that hides a module as the package of its name", "launch/__init__.abi3.so is imported in place of horovod/runner/launch.py",
			more("horovod/runner/launch/__init__.abi3.so", string((&elftest.Library{}).Bytes()))).and("extension-present"),
		row("a wheel that lost a module", "the wheel lacks horovod/tensorflow/__init__.py of the source", func(s *specimen) {
			s.wheel.Files = slices.DeleteFunc(s.wheel.Files, func(f wheeltest.File) bool { return f.Name == "horovod/tensorflow/__init__.py" })
		}),
		blind("a wheel whose source is not in the store", "the source tree is not in the store", "builder store import",
			func(s *specimen) { s.sourceless = true }),
		blind("a wheel of another source than its patches", "patch seal", "correct the cause and run the gate again", func(s *specimen) {
			s.source.entries[2] = file("horovod-0.28.1/horovod/runner/launch.py", "import os\n")
		}),
	}
}

func TestPythonOfItsSource(t *testing.T) {
	inDirectory := func(dir string) func(*specimen) {
		return func(s *specimen) {
			for i := range s.source.entries {
				s.source.entries[i].Name = strings.Replace(s.source.entries[i].Name, "horovod-0.28.1/", "horovod-0.28.1/"+dir, 1)
			}
			s.source.patches[0].Edits[0].File = dir + s.source.patches[0].Edits[0].File
		}
	}
	described := func(project string) func(*specimen) {
		return func(s *specimen) {
			inDirectory("src/")(s)
			s.source.entries = append(s.source.entries[:4], file("horovod-0.28.1/pyproject.toml", project), file("horovod-0.28.1/LICENSE", stockLicense))
		}
	}
	for name, change := range map[string]func(*specimen){
		"packages at the top": func(*specimen) {},
		"the SBOM of builder": func(s *specimen) {
			s.wheel.Files = append(s.wheel.Files, wheeltest.File{Name: infoROCm + "sboms/builder.spdx.json", Text: "{}"})
		},
		"the license of a part": func(s *specimen) {
			i := slices.IndexFunc(s.wheel.Files, func(f wheeltest.File) bool { return f.Name == infoROCm+"LICENSE" })
			s.wheel.Files[i] = wheeltest.File{Name: infoROCm + "licenses/third_party/x/LICENSE", Text: "MIT License\n"}
		},
		"packages below py":           inDirectory("py/"),
		"packages below src, PEP 621": described("[project]\nname = 'horovod'\n[project.scripts]\nhorovodrun = 'horovod.runner.launch:run_commandline'\n"),
		"a group of PEP 621":          described("[project.entry-points.console_scripts]\nhorovodrun = 'horovod.runner.launch:run_commandline'\n"),
	} {
		s := sourced()
		change(s)
		v := pythonSource.Check(t.Context(), s.subject(t))
		check.That(t, v.Status == verdict.Pass && v.Evidence == "5 files, as in horovod-0.28.1.tar with 1 patches", "%s: %+v", name, v)
	}
}

func TestEntryPoints(t *testing.T) {
	for _, text := range []string{"a = b\n", "[g]\nno entry\n", "[g]\na = b\n  c = d\n", "[g]\n# a = b\n", "[g\na = b\n"} {
		got, err := readEntryPoints([]byte(text))
		check.That(t, err != nil, "%q: %v", text, got)
	}
}
