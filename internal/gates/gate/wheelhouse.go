package gate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"builder/internal/files/wheel"
	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/internal/plan/stack"
)

var wheelhouse = Gate{
	Name:   "wheelhouse",
	Asks:   "the wheelhouse installs by digest in an empty container without a network, and lacks only packages provided by the platform",
	Remedy: "add each missing package to extra, if the Python index has it, or to provided, if the platform brings it; then `builder lock` the stack",
	Wants:  func(e recipe.Expect) bool { return e.Wheelhouse != nil },
	Needs:  Container,
	check:  checkWheelhouse,
}

func checkWheelhouse(ctx context.Context, s Subject) verdict.Verdict {
	dir, house, pins, err := s.wheelhouse()
	if err != nil {
		return verdict.Failed("%v", err)
	}
	asked, err := requirements(dir, house)
	if err != nil {
		return verdict.Failed("%v", err)
	}
	out, err := s.install(ctx, "wheelhouse", pins)
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	installed, needs, ok := cutInstall(out.Output)
	if !ok {
		return verdict.Failed("installing %s: exit %d: %s", stack.Requirements, out.Exit, complaint(out.Output))
	}
	problems := slices.Concat(idle(s.Expect.Wheelhouse.Provided, asked), notInstalled(house, installed))
	lacks, err := parseNeeds(needs, out.Exit)
	if err != nil {
		return verdict.Unmeasured("uv pip check: %v", err)
	}
	var platform []string
	for _, l := range slices.Concat(lacks, slices.DeleteFunc(slices.Clone(asked), func(l lack) bool { return !l.external })) {
		if l.instead == "" && slices.ContainsFunc(s.Expect.Wheelhouse.Provided, l.isOf) {
			platform = append(platform, l.String())
			continue
		}
		problems = append(problems, l.String())
	}
	seen := []string{fmt.Sprintf("%d wheels installed by digest without a network", len(house.Wheels()))}
	if len(platform) > 0 {
		seen = append(seen, "the platform provides "+strings.Join(platform, ", "))
	}
	return verdict.Judge(problems, seen)
}

// wheelhouse opens the wheelhouse of the subject, in dir, and reads its requirements file.
func (s Subject) wheelhouse() (dir string, house stack.Manifest, pins string, err error) {
	dir = filepath.Dir(s.Artifact)
	if house, err = stack.Open(dir); err != nil {
		return "", house, "", err
	}
	data, err := os.ReadFile(filepath.Join(dir, stack.Requirements))
	return dir, house, string(data), err
}

// install installs the wheelhouse in the box. With imports, each MODULE=LIBRARY, it then
// prints the files that a process maps, otherwise the missing packages.
func (s Subject) install(ctx context.Context, name, pins string, imports ...string) (Result, error) {
	return s.run(ctx, Command{
		Name: name, Args: append([]string{"sh", "wheelhouse.sh", "UV", "PYTHON", stack.Requirements, stack.Folder}, imports...),
		Files: map[string]string{"wheelhouse.sh": script("wheelhouse.sh"), "partsload.py": script("partsload.py"), stack.Requirements: pins},
	})
}

// requirements returns the requirements in the METADATA of the wheels, including those
// of extras: on projects of the index and on the platform. If a recipe removes a
// requirement from a wheel, it remains there as an external one.
func requirements(dir string, house stack.Manifest) (all []lack, err error) {
	for _, w := range house.Wheels() {
		opened, err := wheel.Open(filepath.Join(dir, stack.Folder, w.Name))
		if err != nil {
			return nil, err
		}
		by := wheel.NormalName(opened.Name.Distribution)
		for _, text := range opened.Metadata.Values("Requires-Dist") {
			all = append(all, lack{by: by, requirement: strings.TrimSpace(text)})
		}
		for _, text := range opened.Metadata.Values("Requires-External") {
			all = append(all, lack{by: by, requirement: strings.TrimSpace(text), external: true})
		}
		opened.Close()
	}
	return all, nil
}

// idle names the packages declared as provided, but required by no wheel.
func idle(provided []recipe.Provided, asked []lack) (problems []string) {
	for _, p := range provided {
		if !slices.ContainsFunc(asked, func(l lack) bool { return l.isOf(p) }) {
			problems = append(problems, p.Project+" is declared as provided, and no wheel requires it")
		}
	}
	return problems
}

var projectPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+`)

// projectOf returns the project name of a requirement.
func projectOf(requirement string) string { return projectPattern.FindString(requirement) }

// cutInstall splits the output of the script into the installed packages and the output
// of uv's check. ok reports whether the installation completed.
func cutInstall(output string) (installed, needs string, ok bool) {
	_, rest, ok := strings.Cut(output, "== installed\n")
	installed, needs, checked := strings.Cut(rest, "== needs\n")
	return installed, needs, ok && checked
}

// complaint returns uv's error and its causes, without the searched locations.
func complaint(output string) string {
	var parts []string
	for _, m := range complaintLine.FindAllStringSubmatch(output, -1) {
		parts = append(parts, m[1])
	}
	return cmp.Or(strings.Join(parts, ": "), lastLine(output))
}

var complaintLine = regexp.MustCompile(`(?m)^\s*(?:error|cause): (.*?)\s*$`)

// notInstalled names the wheels missing in uv's list, and the additional packages in
// it.
func notInstalled(house stack.Manifest, listing string) []string {
	listed := map[string]string{}
	for line := range strings.Lines(listing) {
		if project, version, ok := strings.Cut(strings.TrimSpace(line), "=="); ok {
			listed[wheel.NormalName(project)] = version
		}
	}
	var problems []string
	for _, w := range house.Wheels() {
		name, err := wheel.ParseName(w.Name)
		if err != nil {
			return append(problems, err.Error())
		}
		project := wheel.NormalName(name.Distribution)
		if !name.HasVersion(listed[project]) {
			problems = append(problems, fmt.Sprintf("%s is in the wheelhouse, installed version: %s", w.Name, cmp.Or(listed[project], "missing")))
		}
		delete(listed, project)
	}
	for project := range listed {
		problems = append(problems, project+" was installed before the wheelhouse")
	}
	slices.Sort(problems)
	return problems
}

// A lack is a requirement of an installed wheel that may not be met.
type lack struct {
	by, requirement string
	instead         string // the installed version, if any
	external        bool   // only the platform can meet it: it is never installed
}

func (l lack) isOf(p recipe.Provided) bool {
	return wheel.NormalName(projectOf(l.requirement)) == wheel.NormalName(p.Project)
}

func (l lack) String() string {
	if l.instead == "" {
		return fmt.Sprintf("%s (%s needs it)", l.requirement, l.by)
	}
	return fmt.Sprintf("%s needs %s, and %s is installed", l.by, l.requirement, l.instead)
}

var (
	lackLine  = regexp.MustCompile("(?m)^\\s*The package `([^`]+)` requires `([^`]+)`, but (?:it's not installed|`([^`]+)` is installed)\\s*$")
	lackCount = regexp.MustCompile(`(?m)^\s*Found (\d+) incompatibilit(?:y|ies)\s*$`)
)

// parseNeeds parses the output of uv pip check (0.13). It requires a line for each
// problem in uv's count, because other output has no known meaning.
func parseNeeds(output string, exit int) (lacks []lack, err error) {
	for _, m := range lackLine.FindAllStringSubmatch(output, -1) {
		lacks = append(lacks, lack{by: m[1], requirement: m[2], instead: m[3]})
	}
	counted := ""
	if m := lackCount.FindStringSubmatch(output); m != nil {
		counted = m[1]
	} else if strings.Contains(output, "All installed packages are compatible\n") {
		counted = "0"
	}
	if counted != fmt.Sprint(len(lacks)) || (exit == 0) != (len(lacks) == 0) {
		return nil, fmt.Errorf("exit %d, it counts %s missing packages and names %d: %s", exit, cmp.Or(counted, "missing"), len(lacks), lastLine(output))
	}
	return lacks, nil
}
