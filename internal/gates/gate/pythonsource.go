package gate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/sourcetree"
)

var pythonSource = Gate{
	Name:   "python-source",
	Asks:   "every Python file, program, entry point, requirement, license and SBOM of the wheel is that of the patched source tree",
	Remedy: "the recipe's script changed or added Python, a license or an SBOM: make each change with a patch, and give its reason there",
	Wants:  func(e recipe.Expect) bool { return e.Tree == "" && len(e.Packages) > 0 },
	check:  checkPythonSource,
}

// maxPython bounds a Python file in bytes, as package sourcetree does.
const maxPython = 8 << 20

func checkPythonSource(ctx context.Context, s Subject) verdict.Verdict {
	w, err := wheel.Open(s.Artifact)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	defer w.Close()
	var names []string // of files that must be those of the source
	for _, f := range w.Files {
		if isSourced(placeOf(f.Name)) {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return verdict.Passed("Python runs no file of the wheel, and it has no license and no SBOM but builder's")
	}
	if s.Source == nil {
		return sourceless
	}
	source, err := s.Source.python(ctx, w.Name.Distribution, s.Expect.Packages)
	if err != nil {
		return verdict.Unmeasured("reading the source tree: %v", err)
	}
	problems := source.hiddenModules(w, s.Expect.Extensions)
	for _, name := range names {
		data, err := w.ReadFile(name, maxPython)
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		if fault := source.fault(placeOf(name), data); fault != "" {
			problems = append(problems, name+" "+fault)
		}
	}
	problems = slices.Concat(problems, source.lost(w, s.Expect.Packages), source.otherLicense(w.Metadata), source.otherRequirements(w.Metadata, s.Expect.Packages))
	return verdict.Judge(problems, []string{fmt.Sprintf("%d files, as in %s with %d patches", len(names), s.Source.Name, len(s.Source.Patches))})
}

// hiddenModules names the libraries that Python imports in place of a module beside
// them: a.so and a.cpython-311.so come before a.py. Libraries that the recipe promises
// or the source holds may do so.
func (t pythonTree) hiddenModules(w *wheel.Wheel, extensions []string) (problems []string) {
	module := func(place string) string {
		base, _, _ := strings.Cut(path.Base(place), ".")
		if base == "__init__" { // the folder is a package, and comes before a module beside it
			return path.Dir(place)
		}
		return path.Join(path.Dir(place), base)
	}
	modules := map[string]string{}
	for _, f := range w.Files {
		if place := placeOf(f.Name); path.Ext(place) == ".py" {
			modules[module(place)] = f.Name
		}
	}
	for _, f := range w.Files {
		place := placeOf(f.Name)
		if hidden := modules[module(place)]; path.Ext(place) == ".so" && hidden != "" && !matches(extensions, f.Name) && !t.libraries[place] {
			problems = append(problems, fmt.Sprintf("%s is imported in place of %s", f.Name, hidden))
		}
	}
	return problems
}

// placeOf returns the name of a member of a wheel where it is installed: without .data
// and its scheme for modules, and without the version for the rest of .data and for
// .dist-info.
func placeOf(name string) string {
	top, rest, below := strings.Cut(name, "/")
	switch {
	case !below:
		return name
	case strings.HasSuffix(top, ".dist-info"):
		return ".dist-info/" + rest
	case !strings.HasSuffix(top, ".data"):
		return name
	}
	if scheme, module, _ := strings.Cut(rest, "/"); scheme == "purelib" || scheme == "platlib" {
		return module
	}
	return ".data/" + rest
}

// entryPointsFile is the place of the list of programs and plugins.
const entryPointsFile = ".dist-info/entry_points.txt"

// The places of all SBOMs, and of builder's, which it writes over any other of this name.
const (
	sboms       = ".dist-info/" + wheel.SBOMs
	builderSBOM = sboms + "builder.spdx.json"
)

// isSourced reports whether Python, or a user by name, runs the file at a place, or
// scanners believe it.
func isSourced(place string) bool {
	return slices.Contains([]string{".py", ".pyi", ".pyc", ".pyo", ".pth"}, path.Ext(place)) ||
		strings.HasPrefix(place, ".data/scripts/") || place == entryPointsFile || strings.HasPrefix(place, ".dist-info/") && isLicense(place) ||
		strings.HasPrefix(place, sboms) && place != builderSBOM
}

// isLicense reports whether setuptools takes a file for a license.
func isLicense(name string) bool {
	begins := func(with string) bool { return strings.HasPrefix(path.Base(name), with) }
	return slices.ContainsFunc([]string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS"}, begins)
}

// pythonTree is the Python of a patched source tree.
type pythonTree struct {
	files       map[string][]byte // by the place in a wheel
	description wheel.Header      // PKG-INFO, if the source has it
	required    map[string]bool   // normal names of the projects in requires.txt beside it; true without a condition
	libraries   map[string]bool   // places of libraries
	entryPoints []string
}

// python reads the Python of the source and applies the patches. The names of the files
// and of the directory with the packages are those before the patches.
func (s Upstream) python(ctx context.Context, distribution string, packages []string) (pythonTree, error) {
	names := sourcetree.Files(s.Patches)
	tree, err := s.tree(ctx, func(name string) bool {
		names[name] = names[name] || isSourced(placeOf(name)) || describes(name) || isLicense(name)
		return names[name]
	})
	if err != nil {
		return pythonTree{}, err
	}
	t := pythonTree{files: map[string][]byte{}, libraries: map[string]bool{}}
	for name, wanted := range names {
		if !wanted {
			t.libraries[placeOf(name)] = path.Ext(name) == ".so"
			delete(names, name)
		}
	}
	info, description := eggInfo(ctx, tree, names, distribution)
	t.description = description
	root := rootOf(info, names, packages)
	for name := range names {
		data, err := tree.ReadFile(ctx, name)
		if err != nil {
			continue // too large, or no regular file
		}
		below, ofRoot := strings.CutPrefix(name, root)
		if ofRoot {
			t.files[placeOf(below)] = data
		}
		for _, place := range []string{".dist-info/" + below, ".dist-info/licenses/" + below} {
			if isLicense(name) && (ofRoot || t.files[place] == nil) {
				t.files[place] = data
			}
		}
	}
	t.required = requiredBy(ctx, tree, info)
	t.entryPoints, err = entryPointsOf(ctx, tree, t.files[entryPointsFile], info)
	return t, err
}

// pyproject is the file in which newer projects state their entry points.
const pyproject = "pyproject.toml"

// describes reports whether a file of a source states its distribution or its entry
// points.
func describes(name string) bool {
	base := path.Base(name)
	return name == pyproject || strings.HasSuffix(path.Dir(name), ".egg-info") && slices.Contains([]string{"PKG-INFO", "entry_points.txt", "requires.txt"}, base)
}

// requiredBy returns the projects that setuptools noted as required when it packed the
// source. A line in brackets names an extra or a condition of the lines below it.
func requiredBy(ctx context.Context, tree *sourcetree.Tree, info string) map[string]bool {
	data, _ := tree.ReadFile(ctx, path.Join(info, "requires.txt")) // a source without the file requires nothing
	required, always := map[string]bool{}, true
	for line := range strings.Lines(string(data)) {
		always = always && !strings.HasPrefix(line, "[")
		if name := wheel.NormalName(projectOf(line)); name != "" {
			required[name] = required[name] || always
		}
	}
	return required
}

var projectPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+`)

// projectOf returns the project name of a requirement.
func projectOf(requirement string) string { return projectPattern.FindString(requirement) }

// eggInfo returns the directory in which setuptools described the distribution when it
// packed the source, or "", and the description.
func eggInfo(ctx context.Context, tree *sourcetree.Tree, names map[string]bool, distribution string) (string, wheel.Header) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		data, err := tree.ReadFile(ctx, name)
		if err != nil || !describes(name) || path.Base(name) != "PKG-INFO" {
			continue
		}
		h, err := wheel.ParseHeader(data)
		if err == nil && wheel.NormalName(h.Get("Name")) == wheel.NormalName(distribution) {
			return path.Dir(name), h
		}
	}
	return "", nil
}

// rootOf returns the directory of the source with the packages: the one with the
// .egg-info, src if only that holds a promised package, or else the top.
func rootOf(info string, names map[string]bool, packages []string) string {
	if info != "" {
		return strings.TrimPrefix(path.Dir(info)+"/", "./")
	}
	holds := func(root string) bool {
		return slices.ContainsFunc(packages, func(p string) bool { return names[root+p+"/__init__.py"] })
	}
	if holds("src/") && !holds("") {
		return "src/"
	}
	return ""
}

// entryPointsOf reads the entry points that the source states: in a released wheel, in
// .egg-info or in pyproject.toml.
func entryPointsOf(ctx context.Context, tree *sourcetree.Tree, released []byte, info string) ([]string, error) {
	if released != nil {
		return readEntryPoints(released)
	}
	data, err := tree.ReadFile(ctx, path.Join(info, "entry_points.txt"))
	if info != "" && err == nil {
		return readEntryPoints(data)
	}
	data, _ = tree.ReadFile(ctx, pyproject) // a source without the file states none
	return projectEntryPoints(data)
}

// fault describes how a file of the wheel differs from the source, or returns "".
func (t pythonTree) fault(place string, data []byte) string {
	if place == entryPointsFile {
		return t.entryPointsFault(data)
	}
	want, known := t.files[place]
	switch {
	case !known && strings.HasPrefix(place, sboms):
		return "is an SBOM that neither the source nor builder made"
	case !known:
		return "is neither in the source nor made by a patch"
	case !bytes.Equal(want, data):
		same := 0
		for same < min(len(want), len(data)) && want[same] == data[same] {
			same++
		}
		return fmt.Sprintf("differs from the patched source from line %d on", bytes.Count(want[:same], []byte("\n"))+1)
	}
	return ""
}

// otherLicense names the fields of METADATA about the license that differ from those of the
// source. Older tools write UNKNOWN for none, and each indents further lines in its own way.
func (t pythonTree) otherLicense(metadata wheel.Header) (problems []string) {
	if t.description == nil {
		return nil
	}
	for _, field := range []string{"License", "License-Expression", "Classifier"} {
		var stated [2]string
		for i, h := range []wheel.Header{metadata, t.description} {
			for _, value := range slices.Sorted(slices.Values(h.Values(field))) {
				if value != "UNKNOWN" && (field != "Classifier" || strings.HasPrefix(value, "License ::")) {
					stated[i] = strings.TrimSpace(stated[i] + " " + strings.Join(strings.Fields(value), " "))
				}
			}
		}
		if stated[0] != stated[1] {
			problems = append(problems, fmt.Sprintf("METADATA has the %s %.100q, and the source has %.100q", field, stated[0], stated[1]))
		}
	}
	return problems
}

// otherRequirements names the projects that METADATA requires and the source does not:
// installers fetch and run them. It also names those that METADATA lacks and a module
// imports: the run-time packages of a gate have them, and those of a user do not. Others may
// be for the build.
func (t pythonTree) otherRequirements(metadata wheel.Header, packages []string) (problems []string) {
	have := map[string]bool{}
	for _, requirement := range metadata.Values("Requires-Dist") {
		name := wheel.NormalName(projectOf(requirement))
		have[name] = have[name] || !strings.Contains(requirement, ";")
		if always, named := t.required[name]; t.description != nil && !named {
			problems = append(problems, fmt.Sprintf("METADATA requires %.100q, which the source does not name", requirement))
		} else if named && !always && !strings.Contains(requirement, ";") {
			problems = append(problems, fmt.Sprintf("METADATA requires %.100q without the condition that the source has", requirement))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.required)) {
		if t.required[name] && !have[name] && t.imports(name, packages) {
			problems = append(problems, fmt.Sprintf("METADATA does not require %s without a condition, as the source does, and a module imports it", name))
		}
	}
	return problems
}

// imports reports whether a file of the packages imports the module with the name of a
// project.
func (t pythonTree) imports(project string, packages []string) bool {
	statement := regexp.MustCompile(`(?m)^\s*(import|from)\s+` + regexp.QuoteMeta(strings.ReplaceAll(project, "-", "_")) + `\b`)
	for place, text := range t.files {
		top, _, _ := strings.Cut(place, "/")
		if slices.Contains(packages, top) && statement.Match(text) {
			return true
		}
	}
	return false
}

// lost names the modules of the promised packages that the wheel lacks. A build may leave
// out tests.
func (t pythonTree) lost(w *wheel.Wheel, packages []string) (problems []string) {
	have := map[string]bool{}
	for _, f := range w.Files {
		have[placeOf(f.Name)] = true
	}
	for _, place := range slices.Sorted(maps.Keys(t.files)) {
		top, _, _ := strings.Cut(place, "/")
		ofTests := slices.ContainsFunc(strings.Split(place, "/"), func(d string) bool { return d == "test" || d == "tests" })
		if path.Ext(place) == ".py" && slices.Contains(packages, top) && !ofTests && !have[place] {
			problems = append(problems, "the wheel lacks "+place+" of the source")
		}
	}
	return problems
}

func (t pythonTree) entryPointsFault(data []byte) string {
	have, err := readEntryPoints(data)
	if err != nil {
		return err.Error()
	}
	for _, e := range slices.Concat(have, t.entryPoints) {
		switch {
		case !slices.Contains(t.entryPoints, e):
			return "has " + e + ", which the source does not state"
		case !slices.Contains(have, e):
			return "lacks " + e + " of the source"
		}
	}
	return ""
}
