package gate

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
)

var partsLoad = Gate{
	Name:   "parts-load",
	Asks:   "a process that imports a module of the wheelhouse maps the library of the named part, and no second one",
	Remedy: "find the wheel that brings the mapped file, and leave it out of the stack or take another release of the part",
	Wants:  func(e recipe.Expect) bool { return e.Wheelhouse != nil && len(e.Wheelhouse.Loads) > 0 },
	Needs:  Container,
	check:  checkPartsLoad,
}

func checkPartsLoad(ctx context.Context, s Subject) verdict.Verdict {
	dir, house, pins, err := s.wheelhouse()
	if err != nil {
		return verdict.Failed("%v", err)
	}
	var imports, problems, seen []string
	promised := map[recipe.LibraryLoad]string{} // sha256
	for _, l := range s.Expect.Wheelhouse.Loads {
		imports = append(imports, l.Import+"="+l.Library)
		if promised[l], err = libraryOf(dir, house, l); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return verdict.Judge(problems, nil)
	}
	out, err := s.install(ctx, "parts-load", pins, imports...)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	if out.Exit != 0 {
		return verdict.Failed("exit %d: %s", out.Exit, complaint(out.Output))
	}
	for _, l := range s.Expect.Wheelhouse.Loads {
		if !strings.Contains(out.Output, "== imported "+l.Import+"\n") {
			return verdict.Unmeasured("the program does not say that it imported %s", l.Import)
		}
		problem, what := judgeLoad(l, promised[l], out.Output)
		if problem != "" {
			problems = append(problems, problem)
		} else {
			seen = append(seen, what)
		}
	}
	return verdict.Judge(problems, seen)
}

// libraryOf returns the sha256 of the library in the part's wheel.
func libraryOf(dir string, house stack.Manifest, l recipe.LibraryLoad) (string, error) {
	for _, p := range house.Parts {
		name, err := wheel.ParseName(p.Name)
		if err != nil || wheel.NormalName(name.Distribution) != wheel.NormalName(l.Project) {
			continue
		}
		w, err := wheel.Open(filepath.Join(dir, stack.Folder, p.Name))
		if err != nil {
			return "", err
		}
		defer w.Close()
		for _, f := range w.Files {
			if path.Base(f.Name) == l.Library {
				return w.SHA256(f.Name)
			}
		}
		return "", fmt.Errorf("%s holds no %s", p.Name, l.Library)
	}
	return "", fmt.Errorf("no part of the stack makes a wheel of %s", l.Project)
}

// judgeLoad compares the files mapped after an import with the promised library.
func judgeLoad(l recipe.LibraryLoad, sum, output string) (problem, seen string) {
	var paths, wrong []string
	for line := range strings.Lines(output) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || fields[0] != l.Import {
			continue
		}
		if paths = append(paths, fields[1]); fields[2] != sum {
			wrong = append(wrong, fmt.Sprintf("%s with sha256 %s", fields[1], fields[2]))
		}
	}
	slices.Sort(paths)
	switch {
	case len(paths) == 0:
		return fmt.Sprintf("a process that imports %s maps no %s", l.Import, l.Library), ""
	case len(wrong) > 0:
		return fmt.Sprintf("a process that imports %s maps %s, and the library of %s has sha256 %s", l.Import, strings.Join(wrong, ", "), l.Project, sum), ""
	case len(paths) > 1:
		return fmt.Sprintf("a process that imports %s maps %s twice: %s", l.Import, l.Library, strings.Join(paths, ", ")), ""
	}
	return "", fmt.Sprintf("import %s maps %s of %s", l.Import, paths[0], l.Project)
}
