package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/elf"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var elfSymbols = Gate{
	Name:   "elf-symbols",
	Asks:   "every symbol required by the libraries is in their needed libraries, in the run-time image, and the extension of a framework exports no function of another project",
	Remedy: "a library is missing from the link line, or the run-time image has an older one: read the gate elf-needed and the link lines in the build log",
	Wants:  func(e recipe.Expect) bool { return len(e.Extensions) > 0 },
	Needs:  Container,
	check:  checkSymbols,
}

// wanted is the question for the script in the box: the libraries needed by a file, and
// its undefined symbols with their versions.
type wanted struct {
	Needed  []string    `json:"needed"`
	Symbols [][2]string `json:"symbols"` // name, version
}

// resolved is the answer of the script in the box.
type resolved struct {
	Unloaded map[string]string `json:"unloaded"` // library to the loader's message
	Missing  []string          `json:"missing"`
	Found    map[string]int    `json:"found"` // base name of a file to its number of found symbols
}

func checkSymbols(ctx context.Context, s Subject) verdict.Verdict {
	absent := false
	v := s.members().each(ctx, filesLike(s.Expect.Extensions), func(name string, r io.ReaderAt) (problems, seen []string, err error) {
		f, err := elf.Read(r)
		if err != nil {
			return nil, nil, err
		}
		ask := wantedOf(f, len(s.Expect.Frameworks) > 0)
		if len(ask.Symbols) == 0 && len(f.Exported) == 0 { // a library without dependencies must export symbols
			return nil, nil, errors.New("it neither requires nor exports a symbol: its dynamic symbols were removed")
		}
		have, err := resolve(ctx, s.in(s.Box), ask)
		if err != nil {
			return nil, nil, err
		}
		absent = absent || len(have.Unloaded) > 0
		if foreign := foreignExports(f); len(s.Expect.Frameworks) > 0 && len(foreign) > 0 {
			problems = []string{fmt.Sprintf("%s exports %s: Horovod loads it for all, and libraries loaded later call these in place of their own", name, listed(foreign, 5))}
		}
		return append(problems, have.problems(name)...), []string{have.evidence(name, len(ask.Symbols))}, nil
	})
	if absent && v.Status == verdict.Fail {
		return v.Because("the run-time image lacks a library that the wheel links: add its package to the packages of that image, or link the library statically")
	}
	return v
}

// mayLack matches the weak symbols that compilers ask for and no library need have: of
// transactional memory, of profiles, and of constructors of variables of a thread.
var mayLack = regexp.MustCompile(`^(_ITM_|__gmon_start__$|_ZTH)`)

// wantedOf lists the symbols to find, also the weak ones of an extension: its own code calls
// them as the others.
func wantedOf(f *elf.File, extension bool) wanted {
	ask := wanted{Needed: append([]string{}, f.Needed...), Symbols: [][2]string{}} // empty lists in JSON, not null
	for _, u := range f.Undefined {
		if !u.Weak || extension && !mayLack.MatchString(u.Name) {
			ask.Symbols = append(ask.Symbols, [2]string{u.Name, u.Version})
		}
	}
	return ask
}

// ownExports matches what an extension of Horovod may export: its interface, the function
// that Python calls, and names of C++ with its namespace.
var ownExports = regexp.MustCompile(`^(horovod_|PyInit_|_Z.*horovod)`)

// foreignExports lists the exported names that are not of an extension of Horovod.
func foreignExports(f *elf.File) (names []string) {
	for _, e := range f.Exported {
		if !ownExports.MatchString(e.Name) {
			names = append(names, e.Name)
		}
	}
	return names
}

// resolve asks the dynamic linker of the box.
func resolve(ctx context.Context, in boxed, ask wanted) (resolved, error) {
	question, err := json.Marshal(ask)
	if err != nil {
		return resolved{}, err
	}
	out, err := in.run(ctx, Command{
		Name: "elf-symbols", Args: []string{"PYTHON", "resolve.py", "question.json"},
		Files: map[string]string{"resolve.py": script("resolve.py"), "question.json": string(question)},
	})
	if err != nil {
		return resolved{}, err
	}
	var have resolved
	if err := json.Unmarshal([]byte(jsonLine(out.Output)), &have); err != nil || out.Exit != 0 {
		return resolved{}, fmt.Errorf("asking the dynamic linker: exit %d: %s", out.Exit, lastLine(out.Output))
	}
	count := len(have.Missing)
	for _, n := range have.Found {
		count += max(n, 0)
	}
	if count != len(ask.Symbols) {
		return resolved{}, fmt.Errorf("asking the dynamic linker: %d answers to %d questions", count, len(ask.Symbols))
	}
	return have, nil
}

func (r resolved) problems(name string) []string {
	var problems []string
	for _, library := range slices.Sorted(maps.Keys(r.Unloaded)) {
		problems = append(problems, fmt.Sprintf("%s needs %s, which cannot be loaded: %s", name, library, r.Unloaded[library]))
	}
	if len(r.Missing) > 0 {
		problems = append(problems, fmt.Sprintf("%s requires %d symbols missing from all its libraries: %s",
			name, len(r.Missing), listed(slices.Sorted(slices.Values(r.Missing)), 40)))
	}
	return problems
}

func (r resolved) evidence(name string, asked int) string {
	if asked == 0 {
		return name + ": it requires no symbol of a library"
	}
	var parts []string
	for _, file := range slices.Sorted(maps.Keys(r.Found)) {
		parts = append(parts, fmt.Sprintf("%d in %s", r.Found[file], file))
	}
	return fmt.Sprintf("%s: all %d symbols found, %s", name, asked, strings.Join(parts, ", "))
}
