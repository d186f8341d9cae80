package gate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"builder/internal/recipe"
	"builder/internal/verdict"
	"builder/internal/version"
)

// The gates of this file run the artifact in a box.

var importModule = Gate{
	Name:   "import",
	Asks:   "the promised modules, of Horovod the framework's extension, import in a clean container",
	Remedy: "the extension does not fit the framework that is installed beside it, where an undefined symbol names the library that differs; or a module that is needed is not among the run-time packages",
	Wants:  func(e recipe.Expect) bool { return len(e.Import) > 0 },
	Needs:  Container,
	check:  checkImport,
}

func checkImport(ctx context.Context, s Subject) verdict.Verdict {
	var faults, seen []string
	for _, module := range s.Expect.Import {
		if len(s.Expect.Frameworks) > 0 {
			module += ".mpi_ops" // the package of a framework imports without its extension
		}
		out, err := s.run(ctx, Command{Name: "import", Args: []string{"PYTHON", "-c", "import " + module}})
		if err != nil {
			return verdict.Unmeasured("%v", err)
		}
		if out.Exit != 0 {
			faults = append(faults, fmt.Sprintf("import %s: exit %d: %s", module, out.Exit, lastLine(out.Output)))
			continue
		}
		seen = append(seen, "import "+module)
	}
	return verdict.Judge(faults, seen)
}

var checkBuild = Gate{
	Name:   "check-build",
	Asks:   "horovodrun --check-build lists the framework, the controllers and the operations asked for",
	Remedy: "what lacks its [X] was not compiled in or cannot be loaded: see import, then the configure log",
	Wants:  func(e recipe.Expect) bool { return len(e.Frameworks) > 0 },
	Needs:  Container,
	check:  runCheckBuild,
}

func runCheckBuild(ctx context.Context, s Subject) verdict.Verdict {
	out, err := s.run(ctx, Command{Name: "check-build", Args: []string{"horovodrun", "--check-build"}})
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	listing, err := parseCheckBuild(out.Output)
	if err != nil {
		// The exit status is 0 whatever was found, so it is evidence of nothing
		// but a crash.
		return verdict.Unmeasured("horovodrun --check-build (exit %d): %v: %s", out.Exit, err, lastLine(out.Output))
	}
	faults := slices.Concat(
		listing.lacks("framework", listing.frameworks, s.Expect.Frameworks),
		listing.lacks("controller", listing.controllers, s.Expect.Controllers),
		listing.lacks("tensor operation", listing.operations, s.Expect.Operations),
	)
	for _, name := range ticked(listing.controllers) {
		if !slices.Contains(s.Expect.Controllers, name) {
			faults = append(faults, fmt.Sprintf("controller [X] %s was not asked for", name))
		}
	}
	// Frameworks that were not asked for are judged by extension-present:
	// horovodrun prints [X] PyTorch where no extension was built, because
	// horovod/torch/__init__.py swallows the ImportError (horovod#2713).
	return verdict.Judge(faults, []string{"[X] " + strings.Join(slices.Concat(s.Expect.Frameworks, s.Expect.Controllers, s.Expect.Operations), ", [X] ")})
}

// checkBuildListing is the output of horovodrun --check-build: name to whether
// it is ticked.
type checkBuildListing struct {
	frameworks, controllers, operations map[string]bool
}

// lacks names every wanted item that is not ticked.
func (checkBuildListing) lacks(kind string, have map[string]bool, want []string) []string {
	var faults []string
	for _, name := range want {
		if on, listed := have[name]; !listed {
			faults = append(faults, fmt.Sprintf("%s %s is not listed", kind, name))
		} else if !on {
			faults = append(faults, fmt.Sprintf("%s [ ] %s", kind, name))
		}
	}
	return faults
}

func ticked(have map[string]bool) []string {
	var on []string
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if have[name] {
			on = append(on, name)
		}
	}
	return on
}

// parseCheckBuild reads the listing (horovod/runner/launch.py, check_build, at
// v0.28.1). It demands all three sections with at least one item each: output
// that stops half-way is not a listing.
func parseCheckBuild(output string) (checkBuildListing, error) {
	l := checkBuildListing{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	sections := map[string]map[string]bool{
		"Available Frameworks:":        l.frameworks,
		"Available Controllers:":       l.controllers,
		"Available Tensor Operations:": l.operations,
	}
	var current map[string]bool
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if section, ok := sections[line]; ok {
			current = section
			continue
		}
		name, on := strings.CutPrefix(line, "[X] ")
		if !on {
			var off bool
			if name, off = strings.CutPrefix(line, "[ ] "); !off {
				continue
			}
		}
		if current != nil {
			current[name] = on
		}
	}
	for _, title := range slices.Sorted(maps.Keys(sections)) {
		if len(sections[title]) == 0 {
			return l, fmt.Errorf("no items under %q", title)
		}
	}
	return l, nil
}

var builtFlags = Gate{
	Name:   "built-flags",
	Asks:   "nccl_built(), rocm_built(), cuda_built(), mpi_built() and gloo_built() say what was promised",
	Remedy: "the library was compiled against another stack than the cell names, or without it",
	Wants:  func(e recipe.Expect) bool { return len(e.Built) > 0 && len(e.Import) > 0 },
	Needs:  Container,
	check:  checkBuiltFlags,
}

//go:embed scripts/built.py
var builtScript string

func checkBuiltFlags(ctx context.Context, s Subject) verdict.Verdict {
	out, err := s.run(ctx, Command{
		Name: "built-flags", Args: []string{"PYTHON", "built.py", s.Expect.Import[0]},
		Files: map[string]string{"built.py": builtScript},
	})
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	var have map[string]string
	if err := json.Unmarshal([]byte(jsonLine(out.Output)), &have); err != nil || out.Exit != 0 {
		return verdict.Unmeasured("exit %d: %s", out.Exit, lastLine(out.Output))
	}
	var faults, seen []string
	for _, name := range slices.Sorted(maps.Keys(s.Expect.Built)) {
		fault, err := builtFault(have[name], s.Expect.Built[name])
		if err != nil {
			return verdict.Unmeasured("%s_built(): %v", name, err)
		}
		if fault != "" {
			faults = append(faults, name+"_built() is "+fault)
		}
		seen = append(seen, fmt.Sprintf("%s_built()=%s", name, have[name]))
	}
	return verdict.Judge(faults, seen)
}

func orNothing(s string) string {
	if s == "" {
		return "missing"
	}
	return s
}

// builtFault says how the result of NAME_built() differs from its promise: true,
// false, or a constraint on a version, which the function returns as NCCL's
// number.
func builtFault(have, promise string) (string, error) {
	if promise == "true" || promise == "false" {
		if have != promise {
			return fmt.Sprintf("%s, promised is %s", orNothing(have), promise), nil
		}
		return "", nil
	}
	want, err := version.ParseConstraint(promise)
	if err != nil {
		return "", err
	}
	number, err := strconv.Atoi(have)
	if err != nil || number <= 0 {
		return fmt.Sprintf("%s, promised is version %s", orNothing(have), promise), nil
	}
	is, err := version.Parse(ncclRelease(number))
	if err != nil {
		return "", err
	}
	if !want.Allows(is) {
		return fmt.Sprintf("%s, which is version %s; promised is %s", have, is, promise), nil
	}
	return "", nil
}

var allreduce2 = Gate{
	Name:   "allreduce-2",
	Asks:   "two ranks on this host's CPU agree on an allreduce, an allgather and a broadcast of known tensors",
	Remedy: "the controller does not start or the results are wrong: the wheel would hang or mislead on a cluster",
	Wants:  func(e recipe.Expect) bool { return e.Launcher != "" && len(e.Import) > 0 },
	Needs:  Container,
	check:  checkAllreduce,
}

//go:embed scripts/allreduce.py
var allreduceScript string

// launchers are horovodrun's arguments for each controller. --oversubscribe: two
// ranks have to fit where Open MPI counts one slot.
var launchers = map[string][]string{
	"mpi":  {"--mpi", "--mpi-args=--oversubscribe"},
	"gloo": {"--gloo"},
}

// rankReport is the JSON line that each rank prints.
type rankReport struct {
	Rank      int       `json:"rank"`
	Size      int       `json:"size"`
	Allreduce []float64 `json:"allreduce"`
	Allgather []float64 `json:"allgather"`
	Broadcast []float64 `json:"broadcast"`
}

func checkAllreduce(ctx context.Context, s Subject) verdict.Verdict {
	args, ok := launchers[s.Expect.Launcher]
	if !ok {
		return verdict.Unmeasured("no launcher is called %q", s.Expect.Launcher)
	}
	args = slices.Concat([]string{"horovodrun", "-np", "2", "-H", "localhost:2"}, args,
		[]string{"PYTHON", "allreduce.py", s.Expect.Import[0]})
	out, err := s.run(ctx, Command{
		Name: "allreduce-2", Args: args,
		Env:   map[string]string{"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"},
		Files: map[string]string{"allreduce.py": allreduceScript},
	})
	if err != nil {
		return verdict.Unmeasured("%v", err)
	}
	if out.Exit != 0 {
		return verdict.Failed("horovodrun: exit %d: %s", out.Exit, lastLine(out.Output))
	}
	return judgeRanks(parseRanks(out.Output))
}

// parseRanks finds the report in lines such as `[1,0]<stdout>: {"rank": 0, …}`.
func parseRanks(output string) []rankReport {
	var reports []rankReport
	for line := range strings.Lines(output) {
		start := strings.Index(line, `{"rank"`)
		if start < 0 {
			continue
		}
		var r rankReport
		if json.Unmarshal([]byte(strings.TrimSpace(line[start:])), &r) == nil {
			reports = append(reports, r)
		}
	}
	return reports
}

// judgeRanks compares with the known results: rank r holds [r+1, 10(r+1)], so
// the sum is [3, 30], the gathering [1, 10, 2, 20], and rank 1 broadcasts [2, 20].
func judgeRanks(reports []rankReport) verdict.Verdict {
	if len(reports) != 2 {
		return verdict.Unmeasured("%d ranks reported, 2 were started", len(reports))
	}
	var faults []string
	seen := map[int]bool{}
	for _, r := range reports {
		seen[r.Rank] = true
		if r.Size != 2 {
			faults = append(faults, fmt.Sprintf("rank %d sees %d ranks", r.Rank, r.Size))
		}
		for _, c := range []struct {
			name       string
			have, want []float64
		}{
			{"allreduce", r.Allreduce, []float64{3, 30}},
			{"allgather", r.Allgather, []float64{1, 10, 2, 20}},
			{"broadcast", r.Broadcast, []float64{2, 20}},
		} {
			if !slices.Equal(c.have, c.want) {
				faults = append(faults, fmt.Sprintf("rank %d: %s gave %v, right is %v", r.Rank, c.name, c.have, c.want))
			}
		}
	}
	if !seen[0] || !seen[1] {
		faults = append(faults, "the two reports are not of ranks 0 and 1")
	}
	return verdict.Judge(faults, []string{"2 ranks: allreduce [3 30], allgather [1 10 2 20], broadcast [2 20]"})
}

// run executes a command in the subject's box, if it has one.
func (s Subject) run(ctx context.Context, c Command) (Result, error) {
	if s.Box == nil {
		return Result{}, fmt.Errorf("no container to run it in")
	}
	result, err := s.Box.Run(ctx, c)
	if s.Log != nil {
		fmt.Fprintf(s.Log, "$ %s\n%s[exit %d]\n", strings.Join(c.Args, " "), result.Output, result.Exit)
	}
	return result, err
}

// telling is a line that says why a program failed; Python and the dynamic
// linker say it last, MPI says more afterwards.
var telling = regexp.MustCompile(`\w*(Error|Exception)\b|FAILED|undefined symbol|cannot open shared object`)

// lastLine returns the last line that says why, else the last that says
// anything, shortened to what fits an evidence.
func lastLine(output string) string {
	last := "no output"
	found := false
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		tells := telling.MatchString(line)
		if tells || !found && strings.ContainsFunc(line, unicode.IsLetter) {
			last, found = line, found || tells
		}
	}
	if runes := []rune(last); len(runes) > 400 {
		return string(runes[:400]) + "…"
	}
	return last
}

// jsonLine returns the last line that is a JSON object: warnings may stand
// before and after it.
func jsonLine(output string) string {
	var found string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "{") && strings.HasSuffix(line, "}") {
			found = line
		}
	}
	return found
}
