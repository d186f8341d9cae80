package gate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

// questions lists the questions about the extension of an artifact, and the ranks of its
// own launcher with a task. All of them load its frameworks first.
func (s Subject) questions(task ring) (all []launch) {
	e, ask := s.Expect, func(gate string, program ...string) { all = append(all, alone(gate, program...)) }
	if wantsPlatform(e) {
		ask("platform", "framework_platform.py", e.Import[0])
	}
	for _, module := range importsOf(e) {
		ask("import", "imports.py", module, strconv.Itoa(exitOfImport))
		all[len(all)-1].Clean = true
	}
	if wantsCheckBuild(e) {
		ask("check-build", append([]string{"checkbuild.py"}, frameworks(e)...)...)
	}
	if wantsBuiltFlags(e) {
		ask("built-flags", "flags.py", "module", e.Import[0])
		if extension := s.extensionName(); extension != "" {
			ask("built-flags", "flags.py", "library", extension)
		}
	}
	if wantsRendezvous(e) {
		ask("rendezvous", append([]string{"rendezvous.py"}, e.Import...)...)
	}
	if wantsCollectivesOfRanks(e) {
		l := task.launch(e)
		l.gate, l.horovodrun = "launcher", true
		all = append(all, l)
	}
	return all
}

// frameworks returns the modules of the frameworks: tensorflow for horovod.tensorflow.
func frameworks(e recipe.Expect) (modules []string) {
	for _, module := range e.Import {
		if _, framework, ok := strings.Cut(module, "."); ok {
			modules = append(modules, framework)
		}
	}
	return modules
}

// ends returns the ends of the questions of one gate. In a shared box one process loads
// the frameworks for the questions of all gates.
func (s Subject) ends(ctx context.Context, gate string, task ring) (ends []ranksEnd, err error) {
	all := s.questions(task)
	others := func(l launch) bool { return l.gate != gate }
	name, load := "framework", frameworks(s.Expect)
	if _, shared := s.Box.(*Shared); !shared || len(s.Expect.Frameworks) == 0 {
		name, load, all = gate, nil, slices.DeleteFunc(all, others)
	}
	said, err := s.watch(ctx, name, load, nil, all...)
	for _, end := range said {
		if end.launch.gate == gate {
			s.logEnd(end)
			ends = append(ends, end)
		}
	}
	return ends, err
}

// answers returns the answers to the questions of one gate.
func (s Subject) answers(ctx context.Context, gate string) (all []answer, err error) {
	ends, err := s.ends(ctx, gate, s.ring(ranksOfLauncher))
	for _, end := range ends {
		one, failed := end.answer()
		all, err = append(all, one), cmp.Or(err, failed)
	}
	return all, err
}

// extensionName returns the path in the wheel of the extension with the flags, or "".
func (s Subject) extensionName() string {
	digests, _ := s.digests(s.Expect.Extensions...) // the gate extension-present reports the error
	if len(s.Expect.Frameworks) == 0 || len(digests) != 1 {
		return ""
	}
	return slices.Collect(maps.Keys(digests))[0]
}

// eachController joins the verdicts on the promised controllers, that of the launcher
// first. A failure counts more than a run that was not measured, and that more than a
// pass.
func eachController(e recipe.Expect, check func(controller string) verdict.Verdict) verdict.Verdict {
	controllers := []string{e.Launcher}
	if slices.Contains(listedBuild(e).Controllers, "Gloo") && e.Launcher != "gloo" {
		controllers = append(controllers, "gloo")
	}
	var problems, blind, seen []string
	remedy := ""
	for _, controller := range controllers {
		v := check(controller)
		says := controller + ": " + v.Evidence
		switch v.Status {
		case verdict.Pass:
			seen = append(seen, says)
		case verdict.Fail:
			problems = append(problems, says)
		default:
			blind = append(blind, says)
		}
		remedy = cmp.Or(remedy, v.Remedy)
	}
	joined := verdict.Weigh(problems, blind, seen)
	joined.Remedy = remedy
	return joined
}
