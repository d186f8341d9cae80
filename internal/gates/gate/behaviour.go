package gate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
)

var behaviour = Gate{
	Name:   "behaviour",
	Asks:   "a script of the recipe sees the promised behaviour in the artifact, and the recorded one in upstream's release",
	Remedy: "the patch does not reach the deciding code: the script's output counts, not the edited lines; or says is wrong: correct it",
	Wants:  func(e recipe.Expect) bool { return len(e.Behaviour) > 0 },
	Needs:  Container,
	check:  checkBehaviour,
}

// checkBehaviour checks every behaviour, also after a failure. A failure takes
// precedence over not measured, and not measured over a pass.
func checkBehaviour(ctx context.Context, s Subject) verdict.Verdict {
	var problems, blind, seen []string
	for _, b := range s.Expect.Behaviour {
		problem, says, err := behaves(ctx, b, s.in(s.Box), s.in(s.Stock))
		switch {
		case err != nil:
			blind = append(blind, fmt.Sprintf("%s: %v", b.Name, err))
		case problem != "":
			problems = append(problems, fmt.Sprintf("%s: %s; %s", b.Name, problem, says))
		default:
			seen = append(seen, fmt.Sprintf("%s: %s", b.Name, says))
		}
	}
	v := verdict.Weigh(problems, blind, seen)
	if len(problems) > 0 && s.Source != nil && len(s.Source.Patches) == 0 {
		return v.Because("this cell has no patch: `builder plan` shows the patches that it leaves out, and why; or says is wrong: correct it")
	}
	return v
}

// behaves checks one behaviour of the artifact. If the recipe states the behaviour of
// upstream's release, it checks that too: with another result than the known one, the
// script does not detect the behaviour it was written for.
func behaves(ctx context.Context, b recipe.Behaviour, artifact, stock boxed) (problem, says string, err error) {
	have, err := askBehaviour(ctx, artifact, b)
	if err != nil {
		return "", "", err
	}
	problem, says = differing(have, b.Says, "expected"), "it reports "+said(have)
	if len(b.Stock) == 0 {
		return problem, says, nil
	}
	released, err := askBehaviour(ctx, stock, b)
	if err != nil {
		err = fmt.Errorf("asking upstream's release: %w", err)
	} else if other := differing(released, b.Stock, "recorded"); other != "" {
		err = errors.New("upstream's release differs from its record: " + other)
	}
	says += "; upstream's release reports " + cmp.Or(said(released), "nothing")
	if err != nil && problem == "" { // a problem counts regardless of upstream's release
		return "", "", fmt.Errorf("%w; %s", err, says)
	}
	return problem, says, nil
}

// askBehaviour runs the script of a behaviour in a box and returns its answer.
func askBehaviour(ctx context.Context, in boxed, b recipe.Behaviour) (map[string]string, error) {
	out, err := in.run(ctx, Command{
		Name: "behaviour-" + b.Name, Args: []string{"sh", "-eu", "behaviour.sh"},
		Files: map[string]string{"behaviour.sh": b.Run},
	})
	if err != nil {
		return nil, err
	}
	line := jsonLine(out.Output)
	if out.Exit != 0 || line == "" {
		return nil, fmt.Errorf("the script ended with exit %d and no answer: %s", out.Exit, lastLine(out.Output))
	}
	if len(line) > maxAnswer {
		return nil, fmt.Errorf("the answer has %d bytes, above the limit of %d", len(line), maxAnswer)
	}
	var says map[string]string
	if err := json.Unmarshal([]byte(line), &says); err != nil {
		return nil, fmt.Errorf("the answer is not a flat JSON object of strings: %.200s", line)
	}
	return says, nil
}

// maxAnswer bounds the answer in the evidence, in bytes.
const maxAnswer = 4096

// differing describes how an answer differs from the promised or known one, or returns
// "".
func differing(have, want map[string]string, word string) string {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if have[key] != want[key] {
			problems = append(problems, fmt.Sprintf("%s is %s, %s %s", key, cmp.Or(have[key], "missing"), word, want[key]))
		}
	}
	return strings.Join(problems, ", ")
}

// said formats an answer for users: gpus=2 set=CUDA_VISIBLE_DEVICES.
func said(answer map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(answer)) {
		parts = append(parts, key+"="+answer[key])
	}
	return strings.Join(parts, " ")
}
