package gate

import (
	"fmt"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/internal/plan/recipe"
	"builder/test/kit/check"
)

// Every behaviour is checked, and one that was not measured hides no failure.
func TestEveryBehaviourIsAsked(t *testing.T) {
	b := func(name string) recipe.Behaviour {
		return recipe.Behaviour{Name: name, Run: "echo " + name, Says: map[string]string{"a": "1"}}
	}
	s := Subject{Expect: recipe.Expect{Behaviour: []recipe.Behaviour{b("right"), b("wrong"), b("silent")}}}
	s.Box = container{answers: map[string]Result{
		"behaviour-right": {Output: `{"a": "1", "b": "2"}`}, "behaviour-wrong": {Output: `{"a": "2"}`}, "behaviour-silent": {},
	}}
	v := behaviour.Check(t.Context(), s)
	for _, want := range []string{"wrong: a is 2, expected 1; it reports a=2", "silent: the script ended with exit 0 and no answer"} {
		judged(t, v, verdict.Fail, want)
	}
	s.Expect.Behaviour = []recipe.Behaviour{b("right"), b("silent")}
	judged(t, behaviour.Check(t.Context(), s), verdict.NotMeasured, "")
	s.Expect.Behaviour = s.Expect.Behaviour[:1]
	v = behaviour.Check(t.Context(), s)
	check.That(t, v.Status == verdict.Pass && v.Evidence == "right: it reports a=1 b=2", "got %+v", v)
}

// Both containers run the recipe's script.
func TestTheScriptIsRunInBothContainers(t *testing.T) {
	artifact, release := &answers{result: Result{Output: `{"a": "1"}`}}, &answers{result: Result{Output: `{"a": "0"}`}}
	s := Subject{Box: artifact, Stock: release, Expect: recipe.Expect{Behaviour: []recipe.Behaviour{
		{Name: "x", Run: "the script", Says: map[string]string{"a": "1"}, Stock: map[string]string{"a": "0"}},
	}}}
	v := behaviour.Check(t.Context(), s)
	check.That(t, v.Status == verdict.Pass && v.Evidence == "x: it reports a=1; upstream's release reports a=0", "got %+v", v)
	for name, box := range map[string]*answers{"the artifact's": artifact, "the release's": release} {
		check.That(t, len(box.asked) == 1 && box.asked[0].Files["behaviour.sh"] == "the script" &&
			fmt.Sprint(box.asked[0].Args) == "[sh -eu behaviour.sh]", "%s container was asked %+v", name, box.asked)
	}
	s.Stock = nil
	judged(t, behaviour.Check(t.Context(), s), verdict.NotMeasured, "upstream's release: no container")
}

func TestAnswersAreBounded(t *testing.T) {
	long := `{"a": "` + strings.Repeat("x", maxAnswer) + `"}`
	s := Subject{Box: &answers{result: Result{Output: long}}, Expect: recipe.Expect{Behaviour: []recipe.Behaviour{{Name: "x", Says: map[string]string{"a": "1"}}}}}
	if v := behaviour.Check(t.Context(), s); v.Status != verdict.NotMeasured || !strings.Contains(v.Evidence, "above the limit of 4096") || len(v.Evidence) > 200 {
		t.Errorf("got %+v", v)
	}
}

// For Horovod the gate imports the extension, for other projects the module.
func TestImportOfAModule(t *testing.T) {
	v := importModule.Check(t.Context(), Subject{Expect: recipe.Expect{Import: []string{"ray"}}, Box: container{}})
	check.That(t, v.Status == verdict.Pass && v.Evidence == "import ray", "got %+v", v)
}
