package environment

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/shell"
	"builder/internal/files/elf"
	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
)

// A Gate is one check of an environment.
type Gate struct {
	Name   string
	Asks   string
	Remedy string // default remedy for a failure without its own
	wants  func(*Environment) bool
	check  func(context.Context, *Environment) verdict.Verdict
}

// All lists the gates in the order in which they run.
func All() []Gate {
	has := func(names ...string) func(*Environment) bool {
		return func(e *Environment) bool {
			return slices.ContainsFunc(e.candidates(), func(c candidate) bool { return slices.Contains(names, c.name) })
		}
	}
	loads := func(e *Environment) bool { return len(e.processes) > 0 }
	return []Gate{
		{
			Name: "env-owners", Asks: "no two distributions install different files at one path, and no library changed since its installation",
			Remedy: "install the environment again", wants: func(e *Environment) bool { return len(e.candidates()) > 0 || e.listsLibraries() }, check: checkOwners,
		},
		{
			Name: "env-version", Asks: "a library reports the version in the metadata of its distribution",
			Remedy: "install the distribution again", wants: has("NCCL", "RCCL", "NVSHMEM"), check: checkVersion,
		},
		{
			Name: "env-needed", Asks: "every library needed by a process is installed",
			Remedy: "install the package of the library", wants: loads, check: checkNeeded,
		},
		{
			Name: "env-dlopen", Asks: "every library of a wheel opened by name at run time is installed; those of the host are listed",
			Remedy: "install the package of the library", wants: loads, check: checkDlopen,
		},
		{
			Name: "env-library", Asks: "a process gets one file of each library, and the environment's own, in any order of imports",
			Remedy: "keep one file of the library", wants: loads, check: checkLibrary,
		},
		{
			Name: "env-symbols", Asks: "the library loaded by a process has all symbols required of it",
			Remedy: "install the release used to build the importing package", wants: (*Environment).linksLibraries, check: checkSymbols,
		},
		{
			Name: "env-nvshmem", Asks: "the device half of NVSHMEM, linked into extensions, has the release of the host half",
			Remedy: "build the extension with the installed NVSHMEM", wants: has("NVSHMEM"), check: checkNVSHMEM,
		},
		{
			Name: "env-ibverbs", Asks: "libibverbs is the host's: a bundled one does not find the host's drivers",
			Remedy: "remove the bundled libibverbs", wants: loads, check: checkVerbs,
		},
		{
			Name: "env-device-code", Asks: "NCCL and RCCL have their code for GPUs",
			Remedy: "install the distribution again", wants: has("NCCL", "RCCL"), check: checkDeviceCode,
		},
		{
			Name: "env-process", Asks: "a process with the framework imported has the files and versions predicted from the files",
			Remedy: "read the output of the interpreter", wants: func(e *Environment) bool { return e.Run }, check: checkProcess,
		},
	}
}

// Names lists the names of all gates.
func Names() (names []string) {
	for _, g := range All() {
		names = append(names, g.Name)
	}
	return names
}

// Judge runs the named gates, or all if none are named. Of all, it leaves out those that
// find nothing to check.
func (e *Environment) Judge(ctx context.Context, only []string) []verdict.Verdict {
	verdicts := []verdict.Verdict{}
	for _, g := range All() {
		switch named := slices.Contains(only, g.Name); {
		case len(only) == 0 && !g.wants(e), len(only) > 0 && !named:
		case !g.wants(e):
			verdicts = append(verdicts, g.complete(verdict.Unmeasured("the environment has nothing for this gate to check"), time.Now()))
		default:
			if v := g.ask(ctx, e); len(only) > 0 || !v.FoundNothing() {
				verdicts = append(verdicts, v)
			}
		}
	}
	return verdicts
}

// ask runs one gate. An interrupted or crashed gate never passes.
func (g Gate) ask(ctx context.Context, e *Environment) (v verdict.Verdict) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			v = g.complete(verdict.Unmeasured("the gate crashed: %v\n%s", p, debug.Stack()), start)
		}
	}()
	v = g.check(ctx, e)
	if err := ctx.Err(); err != nil {
		v = verdict.Unmeasured("stopped before it had a verdict: %v", err)
	}
	return g.complete(v, start)
}

func (g Gate) complete(v verdict.Verdict, start time.Time) verdict.Verdict {
	v.Gate, v.Seconds = g.Name, time.Since(start).Seconds()
	if v.Status != verdict.Pass && v.Remedy == "" {
		v.Remedy = g.Remedy
	}
	return v
}

// problem is a problem and its remedy.
type problem struct{ what, remedy string }

// judged makes a verdict from problems, unreadable files and evidence.
func judged(problems []problem, blind, seen []string) verdict.Verdict {
	var told, remedies []string
	for _, f := range problems {
		told = append(told, f.what)
		if !slices.Contains(remedies, f.remedy) && len(remedies) < 5 {
			remedies = append(remedies, f.remedy)
		}
	}
	if len(told) == 0 && len(blind) > 0 {
		return verdict.Unmeasured("%s", strings.Join(blind[:min(len(blind), 20)], "; "))
	}
	return verdict.Judge(append(told, blind...), seen).Because("%s", strings.Join(remedies, "; "))
}

func checkOwners(ctx context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var seen []string
	by := map[string][]owner{}
	for _, d := range e.distributions {
		for _, l := range d.files {
			if matters(l.Path) {
				path := filepath.Join(d.site, filepath.FromSlash(l.Path))
				by[path] = append(by[path], owner{d, l})
			}
		}
	}
	reported := map[string]bool{}
	for _, path := range sorted(by) {
		owners := by[path]
		differ := slices.ContainsFunc(owners, func(o owner) bool {
			return o.listed.SHA256 == "" || o.listed.SHA256 != owners[0].listed.SHA256
		})
		switch names := named(owners); {
		case len(owners) > 1 && differ:
			if !reported[names] { // one line for each pair of distributions, not for each file
				problems = append(problems, e.shared(path, owners))
			}
			reported[names] = true
		case familyOf(path) != nil:
			f, err := e.replaced(ctx, path, owners[0])
			if err != nil {
				return verdict.Unmeasured("%s: %v", path, err)
			}
			problems = append(problems, f...)
		}
	}
	for _, c := range e.candidates() {
		seen = append(seen, e.describe(c.family, c.path))
	}
	return judged(problems, nil, seen)
}

// listsLibraries reports whether a distribution lists a checked library, which may be
// missing.
func (e *Environment) listsLibraries() bool {
	return slices.ContainsFunc(e.distributions, func(d *distribution) bool {
		return slices.ContainsFunc(d.files, func(l wheel.Listed) bool { return familyOf(l.Path) != nil })
	})
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func named(owners []owner) string {
	var names []string
	for _, o := range owners {
		names = append(names, o.String())
	}
	return strings.Join(names, " and ")
}

// shared describes a file installed by two distributions; the later one overwrote it.
func (e *Environment) shared(path string, owners []owner) problem {
	is := "none of them"
	size, sum, err := digest(path)
	if err != nil {
		is = "missing"
	}
	for _, o := range owners {
		if err == nil && o.listed.SHA256 == sum && o.listed.Size == strconv.FormatInt(size, 10) {
			is = "that of " + o.String()
		}
	}
	var remove []string
	for _, o := range owners {
		remove = append(remove, o.name)
	}
	slices.Sort(remove)
	uninstall, installs := shell.Line(append([]string{"pip", "uninstall", "-y"}, slices.Compact(remove)...)...), e.wanted(owners)
	remedy := uninstall + " && " + installs[0]
	if len(installs) > 1 {
		remedy = fmt.Sprintf("`%s`, then either `%s`", uninstall, strings.Join(installs, "` or `"))
	}
	return problem{fmt.Sprintf("%s is listed by %s; the installed file is %s", e.short(path), named(owners), is), remedy}
}

// wanted returns the commands of which one is to install one of several distributions:
// a single one for a wheel of one's own, else for the one that another distribution
// pins, else one for each.
func (e *Environment) wanted(owners []owner) (installs []string) {
	for _, o := range owners {
		if o.local() {
			return []string{o.again()}
		}
		installs = append(installs, shell.Line("pip", "install", o.name+"=="+o.version))
	}
	for _, o := range owners {
		if pin := e.pinned(o.name); pin != o.name {
			return []string{shell.Line("pip", "install", pin)}
		}
	}
	return installs
}

// replaced compares a file with its line in the RECORD of its only distribution.
func (e *Environment) replaced(ctx context.Context, path string, o owner) ([]problem, error) {
	again := o.again()
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return []problem{{fmt.Sprintf("%s lists %s, and the file is missing", o, e.short(path)), again}}, nil
	}
	if err != nil {
		return nil, err
	}
	is := ""
	if want := o.listed.Size; want != "" && want != strconv.FormatInt(info.Size(), 10) {
		is = fmt.Sprintf("has %d bytes, and %s installed %s", info.Size(), o, want)
	} else if o.listed.SHA256 != "" && ctx.Err() == nil {
		_, sum, err := digest(path)
		if err != nil {
			return nil, err
		}
		if sum != o.listed.SHA256 {
			is = fmt.Sprintf("has sha256 %.12s, and %s installed %.12s", sum, o, o.listed.SHA256)
		}
	}
	if is == "" {
		return nil, nil
	}
	return []problem{{fmt.Sprintf("%s was replaced after its installation: it %s", e.short(path), is), again + ", or install the other library as a wheel, so that pip records it"}}, nil
}

func digest(path string) (size int64, sum string, err error) {
	h := sha256.New()
	err = (&library{path: path}).with(func(f *os.File) (err error) {
		size, err = io.Copy(h, f)
		return err
	})
	return size, hex.EncodeToString(h.Sum(nil)), err
}

// local reports whether the version of a distribution has a local part, as those that
// `builder run` makes: no public index has them.
func (o owner) local() bool { return strings.Contains(o.version, "+") }

// again returns the command that installs the distribution once more.
func (o owner) again() string {
	if o.local() {
		return fmt.Sprintf("%s, where FILE is the wheel of %s", reinstall("FILE"), o)
	}
	return reinstall(o.name + "==" + o.version)
}

// right returns the command that installs the release of a distribution that another
// one pins, or its own. A version with a local part satisfies the pin of its release.
func (e *Environment) right(o owner) string {
	if pin := e.pinnedExactly(o.name); pin != "" && !o.local() {
		return reinstall(pin)
	}
	return o.again()
}

// reinstall returns the command to reinstall a distribution. The name is quoted,
// because it comes from an untrusted file.
func reinstall(what string) string {
	return shell.Line("pip", "install", "--force-reinstall", "--no-deps", what)
}

// numbered reports whether a distribution has the version of a library in it. A framework
// with a bundled library has its own, and builder's wheel of RCCL the number of ROCm's RCCL,
// whose library reports that of its NCCL.
func numbered(o owner, library string) bool {
	ofROCm := o.name == "rccl" && strings.Contains(o.version, "+rocm")
	return strings.Contains(o.name, strings.ToLower(library)) && !ofROCm
}

func checkVersion(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var blind, seen []string
	for _, c := range e.candidates() {
		if c.versions == nil {
			continue
		}
		says, err := e.version(c.family, c.path)
		if err != nil {
			blind = append(blind, fmt.Sprintf("%s: %v", e.short(c.path), err))
			continue
		}
		seen = append(seen, e.describe(c.family, c.path))
		for _, o := range e.owners(c.path) {
			if says != "" && numbered(o, c.name) && !sameVersion(says, o.version) {
				problems = append(problems, problem{
					fmt.Sprintf("%s reports %s, and its distribution is %s", e.short(c.path), says, o),
					e.right(o),
				})
			}
		}
	}
	return judged(problems, blind, seen)
}

// pinnedExactly returns the requirement of an installed distribution on an exact
// version of a project, or "".
func (e *Environment) pinnedExactly(project string) string {
	if pin := e.pinned(project); strings.Contains(pin, "==") {
		return pin
	}
	return ""
}

func checkNeeded(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var seen []string
	reported := map[string]bool{}
	for _, p := range e.processes {
		for _, m := range p.missing {
			if reported[m.name] || ofDriver.MatchString(m.name) {
				continue
			}
			reported[m.name] = true
			problems = append(problems, problem{
				fmt.Sprintf("%s needs %s, which was not found%s", e.short(m.by.path), m.name, e.elsewhere(m.name)), e.bring(m.name),
			})
		}
		seen = append(seen, fmt.Sprintf("%s: %d libraries", e.short(p.root.path), len(p.all)))
	}
	return judged(problems, e.blind, few(seen))
}

// elsewhere names a file of that name outside the loader's search path.
func (e *Environment) elsewhere(name string) string {
	if paths := e.byName[name]; len(paths) > 0 {
		return fmt.Sprintf(" in the loader's search path; %s is outside", e.short(paths[0]))
	}
	return ""
}

// bring returns the remedy for a missing library.
func (e *Environment) bring(name string) string {
	_, project := bringer(name)
	switch {
	case len(e.byName[name]) > 0:
		return fmt.Sprintf("install the package and the package of %s for the same interpreter and from wheels of one release: the search path of the first does not lead to the second", name)
	case ofROCm.MatchString(name) && (project == "" || e.pinned(project) == project): // the public index has placeholders of these names
		return "install the ROCm of the package, and put its directory lib into the loader's search path"
	case project != "":
		return shell.Line("pip", "install", e.pinned(project))
	}
	if hostsOwn.MatchString(name) {
		return fmt.Sprintf("install the host's package of %s: it belongs to the drivers of the host, not into a wheel", name)
	}
	return fmt.Sprintf("install the system package or the wheel of %s", name)
}

func few(seen []string) []string {
	if len(seen) > 5 {
		return append(seen[:5:5], fmt.Sprintf("and %d more", len(seen)-5))
	}
	return seen
}

func checkDlopen(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var blind, seen, host []string
	looked := map[*library]bool{}
	for _, p := range e.processes {
		for _, lib := range p.all {
			if looked[lib] || !e.within(lib.path) {
				continue
			}
			looked[lib] = true
			names, err := e.opens(lib)
			if err != nil {
				blind = append(blind, fmt.Sprintf("%s: %v", e.short(lib.path), err))
				continue
			}
			f, found := e.unbrought(p, lib, names)
			problems, seen, host = append(problems, f...), append(seen, found...), append(host, e.ofHost(p, lib, names)...)
		}
	}
	slices.Sort(seen)
	slices.Sort(host)
	// A reader wants to know whether the node has libibverbs, so no library is left out.
	seen = append(slices.Compact(host), few(slices.Compact(seen))...)
	if len(seen) == 0 {
		seen = []string{fmt.Sprintf("no numbered name of a library for GPUs or RDMA among the texts of %d libraries", len(looked))}
	}
	return judged(problems, blind, seen)
}

// opens lists the library names with a version number among a library's texts, without
// its own and the linked ones.
func (e *Environment) opens(lib *library) (names []string, err error) {
	err = lib.with(func(f *os.File) (err error) {
		names, err = elf.LibraryNames(elf.Bounded(e.loader.ctx, f))
		return err
	})
	return slices.DeleteFunc(names, func(name string) bool {
		return strings.HasSuffix(name, ".so") || slices.Contains(lib.links.Needed, name) || name == lib.links.Soname
	}), err
}

// ofHost describes the libraries of the host that a library may open at run time. A
// missing one is no problem: NCCL without libibverbs uses TCP, and a host without a GPU
// has no libcuda.
func (e *Environment) ofHost(p *process, lib *library, names []string) []string {
	var told []string
	for _, name := range names {
		if !hostsOwn.MatchString(name) {
			continue
		}
		where := "not found here"
		if at := e.loader.find(p, lib, name); at != nil {
			where = "found " + e.short(at.path)
		}
		told = append(told, name+" "+where)
	}
	if len(told) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s opens by name, from the host: %s", filepath.Base(lib.path), strings.Join(few(told), ", "))}
}

// unbrought judges the libraries from wheels that a library may open at run time. It
// opens any available version, so one version of each library must exist.
func (e *Environment) unbrought(p *process, lib *library, names []string) (problems []problem, seen []string) {
	self, _ := bringer(filepath.Base(lib.path))
	by := map[string][]string{}
	for _, name := range names {
		if stem, project := bringer(name); project != "" {
			by[stem] = append(by[stem], name)
		}
	}
	for _, stem := range sorted(by) {
		found := ""
		for _, name := range by[stem] {
			if at := e.byName[name]; len(at) > 0 {
				found = at[0]
			} else if at := e.loader.find(p, lib, name); at != nil {
				found = at.path
			}
		}
		switch any := strings.Join(by[stem], " or "); {
		case found != "":
			seen = append(seen, fmt.Sprintf("%s opens %s", filepath.Base(lib.path), e.short(found)))
		case stem == without[self]:
			seen = append(seen, fmt.Sprintf("%s opens %s if it is there: not found", filepath.Base(lib.path), any))
		default:
			problems = append(problems, problem{fmt.Sprintf("%s opens %s at run time, which was not found", e.short(lib.path), any), e.bring(by[stem][0])})
		}
	}
	return problems, seen
}

// got is a file of a family loaded by an import.
type got struct {
	*family
	lib  *library
	root *process
}

// chosen lists the files of families loaded by the imports, each once.
func (e *Environment) chosen() (all []got) {
	for _, p := range e.processes {
		for _, lib := range p.all {
			f := familyOf(lib.path)
			if f == nil || !p.imported() || slices.ContainsFunc(all, func(g got) bool { return g.lib.real == lib.real }) {
				continue
			}
			all = append(all, got{f, lib, p})
		}
	}
	return all
}

func checkLibrary(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var seen []string
	chosen := e.chosen()
	for _, f := range families {
		var mine []got
		for _, g := range chosen {
			if g.family == f && (f.alone || !slices.ContainsFunc(mine, func(o got) bool { return filepath.Base(o.lib.path) != filepath.Base(g.lib.path) })) {
				mine = append(mine, g)
			}
		}
		others := e.others(f, mine)
		problems = append(problems, e.severalFaults(f, mine, others)...)
		for _, g := range mine {
			text := fmt.Sprintf("%s is %s for %s", f.name, e.describe(f, g.lib.path), e.short(g.root.root.path))
			if len(others) > 0 {
				text += "; also installed: " + strings.Join(others, ", ")
			}
			seen = append(seen, text)
			if problem, is := e.outside(f, g); is {
				problems = append(problems, problem)
			}
		}
		if len(mine) == 0 && len(others) > 0 {
			seen = append(seen, fmt.Sprintf("no imported package needs %s: %s", f.name, strings.Join(others, ", ")))
		}
	}
	return judged(problems, nil, seen)
}

// others lists the files of a family that no import loads: in the packages, in
// LD_LIBRARY_PATH and in the system.
func (e *Environment) others(f *family, mine []got) (problems []string) {
	seen := map[string]bool{}
	for _, g := range mine {
		seen[g.lib.real] = true
	}
	add := func(path string) {
		if lib := e.loader.open(path); lib.err == nil && !seen[lib.real] {
			seen[lib.real] = true
			problems = append(problems, e.describe(f, path))
		}
	}
	for _, c := range e.candidates() {
		if c.family == f {
			add(c.path)
		}
	}
	for _, dir := range slices.Concat(e.loader.host.LibraryPath, e.loader.host.Directories) {
		names, _ := os.ReadDir(dir) // a missing directory holds none
		for _, n := range names {
			if f.file.MatchString(n.Name()) {
				add(filepath.Join(dir, n.Name()))
			}
		}
	}
	return problems
}

// severalFaults returns a problem if a process could load more than one file of a
// family.
func (e *Environment) severalFaults(f *family, mine []got, others []string) (problems []problem) {
	if len(mine) > 1 {
		var files []string
		for _, g := range mine {
			files = append(files, fmt.Sprintf("%s for %s", e.describe(f, g.lib.path), e.short(g.root.root.path)))
		}
		return []problem{{
			fmt.Sprintf("imports load %d files of %s: %s; a process with both imports loads two files, or only the first", len(mine), f.name, strings.Join(files, ", ")),
			fmt.Sprintf("keep one %s: %s", f.name, e.keep(f, mine)),
		}}
	}
	if !f.alone || f.name == "libibverbs" {
		return nil
	}
	inside := map[string]candidate{} // by version, or by path if unknown
	for _, c := range e.candidates() {
		if c.family != f {
			continue
		}
		version, _ := e.version(f, c.path) // checkVersion reports the error
		inside[cmp.Or(version, c.path)] = c
	}
	if len(inside) > 1 {
		var files []string
		for _, key := range sorted(inside) {
			files = append(files, e.describe(f, inside[key].path))
		}
		return []problem{{
			fmt.Sprintf("the packages bring %d releases of %s: %s; a process gets the release opened first", len(inside), f.name, strings.Join(files, ", ")),
			fmt.Sprintf("keep one %s: %s", f.name, e.keep(f, mine)),
		}}
	}
	return nil
}

// keep names the file of a family to keep.
func (e *Environment) keep(f *family, mine []got) string {
	if pin := e.pinned(f.project); pin != f.project {
		return fmt.Sprintf("that of %s, and uninstall or rebuild the packages with another", pin)
	}
	if len(mine) > 0 {
		return fmt.Sprintf("%s, and uninstall or rebuild the packages with another", e.short(mine[0].lib.path))
	}
	return "uninstall the packages with the others"
}

// outside returns a problem if a library of the system or of LD_LIBRARY_PATH takes
// precedence over the library of the packages.
func (e *Environment) outside(f *family, g got) (problem, bool) {
	if e.within(g.lib.path) || f.name == "libibverbs" {
		return problem{}, false
	}
	own := ""
	for _, c := range e.candidates() {
		if c.family == f {
			own = c.path
		}
	}
	if own == "" {
		return problem{}, false
	}
	where, remedy := "the system's libraries", fmt.Sprintf("install %s from a wheel with a search path to %s", e.short(g.root.root.path), e.short(filepath.Dir(own)))
	if slices.Contains(e.loader.host.LibraryPath, filepath.Dir(g.lib.path)) {
		where, remedy = "LD_LIBRARY_PATH", fmt.Sprintf("take %s out of LD_LIBRARY_PATH", filepath.Dir(g.lib.path))
	}
	return problem{fmt.Sprintf("%s loads %s from %s, before %s of the environment", e.short(g.root.root.path), e.describe(f, g.lib.path), where, e.describe(f, own)), remedy}, true
}

func checkSymbols(ctx context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var blind, seen []string
	looked := map[[2]string]bool{}
	for _, p := range e.processes {
		for _, lib := range p.all {
			for _, name := range lib.links.Needed {
				to := p.by[name]
				if to == nil || familyOf(to.path) == nil || !e.within(lib.path) || looked[[2]string{lib.real, to.real}] || ctx.Err() != nil {
					continue
				}
				looked[[2]string{lib.real, to.real}] = true
				lacks, wants, err := e.lacks(p, lib, to)
				if err != nil {
					blind = append(blind, err.Error())
					continue
				}
				f := familyOf(to.path)
				seen = append(seen, fmt.Sprintf("%s requires %d symbols of %s", e.short(lib.path), wants, e.short(to.path)))
				if len(lacks) > 0 {
					problems = append(problems, problem{
						fmt.Sprintf("%s requires %s, and %s lacks them", e.short(lib.path), quotedSome(lacks), e.describe(f, to.path)), e.newer(f, lib, to),
					})
				}
			}
		}
	}
	return judged(problems, blind, few(seen))
}

// linksLibraries reports whether an installed library is linked with a checked one.
func (e *Environment) linksLibraries() bool {
	return slices.ContainsFunc(e.processes, func(p *process) bool {
		return slices.ContainsFunc(p.all, func(lib *library) bool {
			return e.within(lib.path) && slices.ContainsFunc(lib.links.Needed, func(name string) bool {
				return p.by[name] != nil && familyOf(p.by[name].path) != nil
			})
		})
	})
}

// lacks lists the symbols of a family that lib requires and that neither the family's
// file nor another library needed by lib exports. wants counts the required symbols.
func (e *Environment) lacks(p *process, lib, to *library) (names []string, wants int, err error) {
	from, err := e.loader.symbols(lib)
	if err != nil {
		return nil, 0, err
	}
	have, err := e.loader.symbols(to)
	if err != nil {
		return nil, 0, err
	}
	given := map[string]bool{}
	for _, s := range have.Exported {
		given[s.Name] = true
	}
	f := familyOf(to.path)
	for _, s := range from.Undefined {
		ours := s.Library == "" || s.Library == to.links.Soname
		if !ours || s.Weak || !f.symbols.MatchString(s.Name) {
			continue
		}
		if wants++; !given[s.Name] {
			names = append(names, s.Name)
		}
	}
	for _, other := range p.all {
		if len(names) == 0 {
			break
		}
		if other == to || other == lib || !slices.Contains(lib.links.Needed, other.links.Soname) {
			continue
		}
		more, err := e.loader.symbols(other)
		if err != nil {
			return nil, wants, err
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return slices.ContainsFunc(more.Exported, func(s elf.Symbol) bool { return s.Name == name })
		})
	}
	return names, wants, nil
}

func quotedSome(names []string) string {
	if len(names) > 5 {
		return fmt.Sprintf("%.100q and %d more", names[:5], len(names)-5)
	}
	return fmt.Sprintf("%.100q", names)
}

// newer returns the remedy for missing symbols.
func (e *Environment) newer(f *family, lib, to *library) string {
	var who string
	if owners := e.owners(lib.path); len(owners) > 0 {
		who = owners[0].name
	}
	if pin := e.pinned(f.project); strings.Contains(pin, "==") {
		return fmt.Sprintf("%s, the release used to build %s", shell.Line("pip", "install", "--force-reinstall", pin), cmp.Or(who, "the importing package"))
	}
	return fmt.Sprintf("replace %[3]s by the %[1]s release used to build %[2]s", f.name, cmp.Or(who, e.short(lib.path)), e.short(to.path))
}

// deviceVersion is the version constant of NVSHMEM's device library: three 32-bit
// numbers.
const deviceVersion = "_ZL27nvshmemi_device_lib_version"

var headerVersion = regexp.MustCompile(`(?m)^#define NVSHMEM_VENDOR_(MAJOR|MINOR|PATCH)_VERSION (\d+)\s*$`)

func checkNVSHMEM(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var blind, seen []string
	looked := map[string]bool{}
	for _, p := range e.processes {
		for _, lib := range p.all {
			for _, name := range lib.links.Needed {
				to := p.by[name]
				if to == nil || !is(to, "NVSHMEM") || looked[lib.real] {
					continue
				}
				looked[lib.real] = true
				host, err := e.version(familyOf(to.path), to.path)
				device, err2 := e.deviceHalf(lib)
				switch err := errors.Join(err, err2); {
				case errors.Is(err, elf.ErrNoSymbol):
					seen = append(seen, fmt.Sprintf("%s has no device half, or its symbol was stripped", e.short(lib.path)))
				case err != nil:
					blind = append(blind, fmt.Sprintf("%s: %v", e.short(lib.path), err))
				case !sameVersion(host, device):
					problems = append(problems, problem{
						fmt.Sprintf("%s has the device half of NVSHMEM %s, but loads the host half %s", e.short(lib.path), device, e.describe(familyOf(to.path), to.path)),
						fmt.Sprintf("build %s with the loaded NVSHMEM, or install %s", filepath.Base(lib.path), nvshmemOf(e, to, device)),
					})
				default:
					seen = append(seen, fmt.Sprintf("%s: both halves are %s", e.short(lib.path), host))
				}
			}
		}
	}
	for _, c := range e.candidates() {
		if c.name != "NVSHMEM" {
			continue
		}
		header, ok := headerOf(c.path)
		host, err := e.version(c.family, c.path)
		if err == nil && ok && host != "" && !sameVersion(host, header) {
			problems = append(problems, problem{
				fmt.Sprintf("the headers and the device library beside %s have release %s", e.describe(c.family, c.path), header),
				reinstall(e.pinned(c.project)),
			})
		}
		seen = append(seen, e.describe(c.family, c.path))
	}
	return judged(problems, blind, seen)
}

func is(lib *library, family string) bool {
	f := familyOf(lib.path)
	return f != nil && f.name == family
}

// nvshmemOf names the distribution of the host library in another version.
func nvshmemOf(e *Environment, host *library, version string) string {
	if owners := e.owners(host.path); len(owners) > 0 {
		return owners[0].name + "==" + version
	}
	return "NVSHMEM " + version
}

// deviceHalf returns the version of NVSHMEM's device library linked into a library.
func (e *Environment) deviceHalf(lib *library) (version string, err error) {
	err = lib.with(func(f *os.File) error {
		data, err := elf.Constant(elf.Bounded(e.loader.ctx, f), deviceVersion, 12)
		if err == nil {
			version = fmt.Sprintf("%d.%d.%d", data[0], data[4], data[8])
		}
		return err
	})
	return version, err
}

// headerOf reads the version from the headers beside the host library.
func headerOf(path string) (string, bool) {
	var text []byte
	header := &library{path: filepath.Join(filepath.Dir(filepath.Dir(path)), "include/non_abi/nvshmem_version.h")}
	err := header.with(func(f *os.File) (err error) {
		text, err = io.ReadAll(io.LimitReader(f, 1<<16))
		return err
	})
	said := map[string]string{}
	for _, m := range headerVersion.FindAllSubmatch(text, -1) {
		said[string(m[1])] = string(m[2])
	}
	return said["MAJOR"] + "." + said["MINOR"] + "." + said["PATCH"], err == nil && len(said) == 3
}

func checkVerbs(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	for _, c := range e.candidates() {
		if c.name != "libibverbs" {
			continue
		}
		from, of := "an unknown package", "its package"
		if owners := e.owners(c.path); len(owners) > 0 {
			from, of = owners[0].String(), owners[0].name
		}
		problems = append(problems, problem{
			fmt.Sprintf("%s comes from %s; it looks for drivers in the directory set at its build, and the host's drivers are of another release", e.short(c.path), from),
			fmt.Sprintf("install a build of %s without libibverbs (auditwheel --exclude libibverbs.so.1), and the host's rdma-core", of),
		})
	}
	return judged(problems, nil, []string{"no package brings libibverbs"})
}

// kpackPath matches the path of separate device code in a ROCm library, used since
// 2026: ../.kpack/rccl_lib_@GFXARCH@.kpack.
var kpackPath = regexp.MustCompile(`[\w./@-]*\.kpack/[\w.@-]+\.kpack`)

func checkDeviceCode(_ context.Context, e *Environment) verdict.Verdict {
	var problems []problem
	var blind, seen []string
	for _, c := range e.candidates() {
		if c.name != "NCCL" && c.name != "RCCL" {
			continue
		}
		where, lacks, err := e.deviceCode(c.path)
		switch {
		case err != nil:
			blind = append(blind, fmt.Sprintf("%s: %v", e.short(c.path), err))
		case lacks != "":
			problems = append(problems, problem{fmt.Sprintf("%s %s", e.describe(c.family, c.path), lacks), e.kernels(c)})
		default:
			seen = append(seen, fmt.Sprintf("%s has its GPU code in %s", e.short(c.path), where))
		}
	}
	return judged(problems, blind, seen)
}

func (e *Environment) kernels(c candidate) string {
	if c.name == "RCCL" {
		return "install the distribution with the device code of this GPU (rocm[device-all] of the same release), or an RCCL with the code inside"
	}
	return reinstall(e.pinned(c.project))
}

// deviceCode returns the location of a library's GPU code, or the missing file.
func (e *Environment) deviceCode(path string) (where, lacks string, err error) {
	err = e.loader.open(path).with(func(f *os.File) error {
		r := elf.Bounded(e.loader.ctx, f)
		for _, name := range []string{".nv_fatbin", "__nv_relfatbin", ".hip_fatbin"} {
			s, ok, err := elf.FindSection(r, name)
			if err != nil {
				return err
			}
			if ok && s.Size > 64 {
				where = name
				return nil
			}
		}
		s, ok, err := elf.FindSection(r, ".rocm_kpack_ref")
		if err != nil || !ok {
			lacks = "has no GPU code"
			return err
		}
		text, err := io.ReadAll(io.LimitReader(s.Open(), 1<<20))
		for _, pattern := range kpackPath.FindAllString(string(text), -1) {
			glob := strings.ReplaceAll(quoted(filepath.Join(filepath.Dir(path), pattern)), "@GFXARCH@", "*")
			if found, _ := filepath.Glob(glob); len(found) > 0 {
				where = e.short(found[0])
				return err
			}
			lacks = fmt.Sprintf("has its GPU code in %s, and this file is missing", pattern)
		}
		lacks = cmp.Or(lacks, "names no file with its GPU code")
		return err
	})
	return where, lacks, err
}
