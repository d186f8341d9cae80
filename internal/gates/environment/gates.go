package environment

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"builder/internal/base/shell"
	"builder/internal/gates/verdict"
)

// gates lists the checks in the order in which they run.
var gates = []struct {
	name  string
	check func(*Environment, *findings)
}{
	{"env-metadata", checkMetadata}, {"env-needed", checkNeeded}, {"env-library", checkLibrary},
	{"env-process", checkProcess}, {"env-dlopen", checkOpens},
}

// findings collects what a gate sees.
type findings struct{ problems, remedies, unmeasured, seen []string }

func (f *findings) problem(remedy, format string, args ...any) {
	f.problems = append(f.problems, fmt.Sprintf(format, args...))
	if !slices.Contains(f.remedies, remedy) && len(f.remedies) < 5 {
		f.remedies = append(f.remedies, remedy)
	}
}

func (f *findings) saw(format string, args ...any) {
	f.seen = append(f.seen, fmt.Sprintf(format, args...))
}

// Judge runs all gates. It leaves out those that find nothing to check. What was not
// measured is no pass.
func (e *Environment) Judge() []verdict.Verdict {
	verdicts := []verdict.Verdict{}
	for _, g := range gates {
		start, f := time.Now(), &findings{}
		g.check(e, f)
		if len(f.problems)+len(f.unmeasured)+len(f.seen) > 0 {
			v := verdict.Weigh(f.problems, f.unmeasured, f.seen).Because("%s", strings.Join(f.remedies, "; "))
			v.Gate, v.Seconds = g.name, time.Since(start).Seconds()
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// families names the libraries of which a process should have one file, by their stem.
// Bundled copies have a digest in their name.
var families = map[string]string{"nccl": "NCCL", "rccl": "RCCL", "nvshmem_host": "NVSHMEM", "amdhip64": "the HIP runtime"}

var bundled = regexp.MustCompile(`-[0-9a-f]{6,}$`)

// group names the files of which a process should have one. Two CUDA runtimes get along
// if their names differ.
func group(path string) string {
	if name := families[bundled.ReplaceAllString(stem(path), "")]; name != "" {
		return name
	}
	return filepath.Base(path)
}

// stem returns the name of a library without its version.
func stem(path string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), "lib"), ".so")
	return name
}

func few(texts []string, max int) []string {
	if len(texts) <= max {
		return texts
	}
	return append(texts[:max:max], fmt.Sprintf("and %d more", len(texts)-max))
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checkMetadata: no two distributions install different files at one path, and an
// installed library is the one of its distribution.
func checkMetadata(e *Environment, f *findings) {
	reported := map[string]bool{}
	for _, path := range sorted(e.Owned) {
		is := e.Owned[path]
		if len(is.By) == 0 {
			continue
		}
		first := is.By[0]
		uninstall, here, differ := []string{"pip", "uninstall", "-y"}, "none of them", false
		for _, o := range is.By {
			uninstall = append(uninstall, o.Name)
			differ = differ || o.Digest == "" || o.Digest != first.Digest
			if o.Digest == is.Digest {
				here = "that of " + o.String()
			}
		}
		by := strings.Join(e.Libraries[path], " and ")
		switch version := e.Files[path].Version; {
		case reported[by]: // one line for each pair of distributions, not for each file
		case len(is.By) > 1 && differ:
			reported[by] = true
			f.problem(shell.Line(uninstall...)+", then install the one that you want", "%s is listed by %s; the installed file is %s", e.short(path), by, here)
		case is.Digest == "":
			f.problem(again(first), "%s lists %s, and the file is missing", first, e.short(path))
		case first.Digest != "" && first.Digest != is.Digest:
			f.problem(again(first)+", or install the other library as a wheel, so that pip records it", "%s of %s was replaced after its installation", e.short(path), by)
		case group(path) == "NCCL" && version == "":
			f.unmeasured = append(f.unmeasured, fmt.Sprintf("%s does not say its version: %s", e.short(path), e.Files[path].Fault))
		case strings.Contains(first.Name, "nccl") && version != "" && !strings.HasPrefix(strings.ReplaceAll(first.Version, "+", ".")+".", version+"."):
			f.problem(again(first), "%s says that it is %s, and its distribution is %s", e.short(path), version, first)
		default:
			f.saw("%s", e.describe(path))
		}
	}
}

// again returns the command that installs a distribution once more. No index has a
// version with a local part, as those that builder makes.
func again(o owner) string {
	if strings.Contains(o.Version, "+") {
		return fmt.Sprintf("pip install --force-reinstall --no-deps FILE, where FILE is the wheel of %s", o)
	}
	return shell.Line("pip", "install", "--force-reinstall", "--no-deps", o.Name+"=="+o.Version)
}

// checkNeeded: the loader finds every library that an extension module needs.
func checkNeeded(e *Environment, f *findings) {
	for _, path := range sorted(e.Unreadable) {
		f.unmeasured = append(f.unmeasured, e.short(path)+": "+e.Unreadable[path])
	}
	reported := map[string]bool{}
	for _, path := range sorted(e.Modules) {
		m := e.Modules[path]
		for _, name := range m.Missing {
			if !reported[name] {
				e.missing(f, path, name)
			}
			reported[name] = true
		}
		f.saw("%s: %d libraries", e.short(path), m.Libraries)
	}
	f.seen = few(f.seen, 5)
}

// missing reports a library that a module needs and that the loader does not find. It
// names no project to install: the name of a library says neither who brings it nor in
// which release, and the module can be the wrong one.
func (e *Environment) missing(f *findings, module, name string) {
	who := e.describe(module)
	there, remedy := "", fmt.Sprintf("install %s in the release that %s was built with: `%s` names what it requires", name, who, shell.Line(e.Python, "-m", "pip", "check"))
	if same, other := e.have(name); same != "" {
		there = fmt.Sprintf("; %s is outside its search path", e.describe(same))
		remedy = fmt.Sprintf("install %s and the package of %s from wheels of one release: the search path of the first does not lead to the second", who, name)
	} else if other != "" {
		there = "; there is " + e.describe(other)
		remedy = fmt.Sprintf("install the build of %s for %s, which is here: %s is another major version", who, filepath.Base(other), name)
	}
	f.problem(remedy, "%s needs %s, which was not found%s", e.short(module), name, there)
}

// have returns a library with a name, and one with another version of it.
func (e *Environment) have(name string) (same, other string) {
	for _, path := range sorted(e.Libraries) {
		if filepath.Base(path) == name {
			same = path
		} else if stem(path) == stem(name) {
			other = path
		}
	}
	return same, other
}

// checkLibrary: processes get one file of each library, and the environment's own.
func checkLibrary(e *Environment, f *findings) {
	users, groups := map[string]string{}, map[string][]string{} // a module for each file that is used
	for _, module := range sorted(e.Modules) {
		for _, path := range e.Modules[module].Families {
			users[path] = cmp.Or(users[path], module)
		}
	}
	for _, path := range sorted(e.Files) {
		groups[group(path)] = append(groups[group(path)], path)
	}
	for _, g := range sorted(groups) {
		e.judgeGroup(f, g, groups[g], users)
	}
}

// judgeGroup judges the files of which a process should have one.
func (e *Environment) judgeGroup(f *findings, group string, paths []string, users map[string]string) {
	var uses, others []string
	outside, own, releases := "", "", map[string]bool{} // a file that is used, one of the packages, and their releases
	for _, path := range paths {
		if e.short(path) != path {
			own, releases[e.Files[path].Version] = path, true
		} else if users[path] != "" {
			outside = path
		}
		if users[path] != "" {
			uses = append(uses, fmt.Sprintf("%s for %s", e.describe(path), e.short(users[path])))
		} else {
			others = append(others, e.describe(path))
		}
	}
	remedy := "uninstall or rebuild the package with the other file"
	if dir := filepath.Dir(outside); slices.Contains(filepath.SplitList(os.Getenv("LD_LIBRARY_PATH")), dir) {
		remedy = fmt.Sprintf("take %s out of LD_LIBRARY_PATH", dir)
	} else if outside != "" && own != "" {
		remedy = fmt.Sprintf("start processes with LD_LIBRARY_PATH=%s, so that %s gets that file too", shell.Word(filepath.Dir(own)), e.short(users[outside]))
	}
	switch {
	case len(uses) > 1:
		f.problem(remedy, "modules get %d files of %s: %s; a process with both has two, or only the first", len(uses), group, strings.Join(uses, ", "))
	case len(releases) > 1:
		f.problem(remedy, "the packages bring %d releases of %s: %s; a process has the one opened first", len(releases), group, strings.Join(append(uses, others...), ", "))
	case outside != "" && own != "":
		f.problem(remedy, "%s is %s, before %s", group, uses[0], e.describe(own))
	case len(uses) == 0:
		f.saw("no module needs %s: %s", group, strings.Join(others, ", "))
	default:
		f.saw("%s is %s", group, strings.Join(append(uses, others...), "; also there: "))
	}
}

// checkProcess: a process that opens a module has the files that the loader names, and
// every symbol.
func checkProcess(e *Environment, f *findings) {
	var drivers []string
	for _, module := range sorted(e.Modules) {
		m := e.Modules[module]
		drivers = append(drivers, m.Driver...)
		switch {
		case m.Process == nil:
		case m.Process.Fault != "":
			f.problem("install the release of the library that the module was built with", "opening %s: %s", e.short(module), m.Process.Fault)
		default:
			has := sorted(m.Process.Files)
			for _, named := range m.Families {
				if !slices.Contains(has, named) {
					f.problem("find what opens another file, such as a .pth file", "a process with %s has %s, but not %s, which the loader names", e.short(module), strings.Join(has, ", "), named)
				}
			}
			f.saw("%s: %s", e.short(module), strings.Join(has, ", "))
		}
	}
	if len(f.problems)+len(f.seen) == 0 && len(drivers) > 0 {
		f.unmeasured, f.remedies = []string{"no module was opened: this host has no " + drivers[0]}, []string{"run the command on a node with the driver of the GPU"}
	}
}

// checkOpens: the packages have no library under another name than the one that is
// opened by name. A library tries several names of one, and those of the host.
func checkOpens(e *Environment, f *findings) {
	for _, path := range sorted(e.Files) {
		finds := map[string]bool{}
		for name, found := range e.Files[path].Opens {
			finds[stem(name)] = finds[stem(name)] || found
		}
		var told []string
		for _, name := range sorted(e.Files[path].Opens) {
			switch same, other := e.have(name); {
			case finds[stem(name)]:
				told = append(told, name+" found")
			case same == "" && other != "":
				dir := filepath.Dir(other)
				link := shell.Line("ln", "-s", filepath.Base(other), filepath.Join(dir, name))
				f.problem(fmt.Sprintf("%s && export LD_LIBRARY_PATH=%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}", link, shell.Word(dir)), "%s opens %s by name, which was not found; there is %s", e.short(path), name, e.describe(other))
			default:
				told = append(told, strings.TrimSpace(name+" not found "+e.short(same)))
			}
		}
		if len(told) > 0 {
			f.saw("%s opens by name: %s", e.short(path), strings.Join(few(told, 8), ", "))
		}
	}
}
