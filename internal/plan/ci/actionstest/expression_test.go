package actionstest

import (
	"strings"
	"testing"
)

func example() scope {
	return scope{ok: true, contexts: map[string]any{
		"inputs": map[string]any{"publish": "", "runner": "big"},
		"needs":  map[string]any{"build": map[string]any{"result": "success", "outputs": map[string]any{"m": `{"include":[{"id":"a"}]}`, "none": `{"include":[]}`}}},
		"github": map[string]any{"event": map[string]any{}, "repository": "o/r"},
		"env":    map[string]any{"LOGIN": "false"},
	}}
}

func TestEvaluate(t *testing.T) {
	for expression, want := range map[string]any{
		"inputs.runner":                                 "big",
		"inputs.publish != ''":                          false,
		"inputs.runner == 'BIG' && 'yes'":               "yes",
		"inputs.publish || 'none'":                      "none",
		"fromJSON(needs.build.outputs.m).include[0].id": "a",
		"fromJSON(needs.build.outputs.none).include[0]": nil,
		"!github.event.pull_request || github.event.pull_request.head.repo.full_name == github.repository": true,
		"github.event.pull_request.head.repo.full_name == github.repository":                               false,
		"!cancelled() && (needs.build.result == 'success' || needs.build.result == 'skipped')":             true,
		"env.LOGIN == 'true'":                 false,
		"'it''s'":                             "it's",
		"success() && !failure() && always()": true,
	} {
		if got, err := example().evaluate(expression); err != nil || got != want {
			t.Errorf("%s is %v, %v; want %v", expression, got, err, want)
		}
	}
}

// What the evaluator does not know is said, not guessed.
func TestEvaluateRefuses(t *testing.T) {
	for expression, says := range map[string]string{
		"inputs.publsh":                "there is no inputs.publsh",
		"needs.gate.result":            "there is no needs.gate",
		"secret.key":                   `"secret" is not known`,
		"contains(inputs.runner, 'b')": "contains with 2 arguments is not known",
		"needs.*.result":               "is no form that is known",
		"inputs.runner > 1":            "is no form that is known",
		"inputs.runner inputs":         "is left over",
		"(inputs.runner":               `"" instead of ")"`,
		"inputs.runner == true":        `"true" is not known`,
		"inputs == inputs":             "comparing",
		"fromJSON('{')":                "unexpected end",
		"'open":                        "is no form that is known",
	} {
		if got, err := example().evaluate(expression); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s is %v, %v; want %q", expression, got, err, says)
		}
	}
}

func TestHolds(t *testing.T) {
	for condition, want := range map[string][2]bool{ // after success, after failure
		"":                           {true, false},
		"${{ inputs.runner != '' }}": {true, false},
		"${{ always() }}":            {true, true},
		"${{ failure() }}":           {false, true},
		"${{ !cancelled() && inputs.runner == '' }}": {false, false},
	} {
		for i, ok := range []bool{true, false} {
			s := example()
			s.ok = ok
			if got, err := s.holds(condition); err != nil || got != want[i] {
				t.Errorf("%q after success %v is %v, %v", condition, ok, got, err)
			}
		}
	}
	if _, err := example().holds("inputs.runner"); err == nil {
		t.Error("an expression without its brackets is taken")
	}
}

func TestText(t *testing.T) {
	got, err := example().text("run-${{ inputs.runner }}-${{ github.event.number }}-*")
	if err != nil || got != "run-big--*" {
		t.Errorf("%q, %v", got, err)
	}
	for _, template := range []string{"${{ inputs.runner", "${{ inputs }}"} {
		if got, err := example().text(template); err == nil {
			t.Errorf("%s is %q", template, got)
		}
	}
}
