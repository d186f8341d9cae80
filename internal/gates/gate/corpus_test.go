package gate

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
)

// A bad artifact is a good one with a small change, and the gate that must refuse it.
// Each row once passed the gates by mistake or was seen in the wild. The corpus
// therefore measures the gates.
type bad struct {
	what   string // as in docs/refused.md
	of     func() *specimen
	change func(*specimen)
	gate   string // the gate that must refuse it
	blind  bool   // the verdict is not measured, not a failure
	says   string // in the evidence
	do     string // in the remedy
	also   string // other gates that refuse it
}

// refused returns a row. Its last argument lists the other gates that refuse it.
func refused(what string, of func() *specimen, change func(*specimen), gate, says, do string, also ...string) bad {
	return bad{what: what, of: of, change: change, gate: gate, says: says, do: do, also: strings.Join(also, " ")}
}

// and adds gates that refuse the artifact too.
func (b bad) and(gates string) bad {
	b.also = strings.TrimSpace(b.also + " " + gates)
	return b
}

// unmeasured returns a row whose verdict is not measured.
func (b bad) unmeasured() bad {
	b.blind = true
	return b
}

func corpus() []bad {
	return slices.Concat(badBuilds(), badTargets(), badCode(), badLinks(), badRuns(), badPlatforms(), badTraining(), badTests(), badRequests(), badLies(), badWheels(), badPython(), badNCCL(), badArchives(), badTrees(), badBehaviour())
}

func TestBadArtifacts(t *testing.T) {
	seen, inBox := map[string]bool{}, map[string]bool{}
	for _, g := range All() {
		inBox[g.Name] = g.Needs >= Container
	}
	for _, b := range corpus() {
		check.That(t, !seen[b.what] && b.says != "" && b.do != "", "%q stands there twice, or says too little", b.what)
		seen[b.what] = true
		t.Run(b.what, func(t *testing.T) {
			s := b.of()
			b.change(s)
			b.judge(t, s.verdicts(t))
			if !inBox[b.gate] { // a gate on files does not see who shares the box
				return
			}
			s = b.of()
			b.change(s)
			b.judge(t, s.shared(t))
		})
	}
}

func (b bad) judge(t *testing.T, verdicts []verdict.Verdict) {
	also := strings.Fields(b.also)
	for _, v := range verdicts {
		if v.Gate == b.gate {
			b.judgeRefusal(t, v)
			continue
		}
		i := slices.Index(also, v.Gate)
		check.That(t, (v.Status == verdict.Pass) == (i < 0), "%+v, and it is listed: %v", v, i >= 0)
		if i >= 0 {
			also = slices.Delete(also, i, i+1)
		}
	}
	check.That(t, len(also) == 0 && slices.ContainsFunc(verdicts, func(v verdict.Verdict) bool { return v.Gate == b.gate }),
		"not asked: %v, or %s", also, b.gate)
	check.That(t, verdict.Refusals("it", verdicts) != nil, "it may be published")
}

func (b bad) judgeRefusal(t *testing.T, v verdict.Verdict) {
	want := verdict.Fail
	if b.blind {
		want = verdict.NotMeasured
	}
	check.That(t, v.Status == want && strings.Contains(v.Evidence, b.says) && strings.Contains(v.Remedy, b.do),
		"want %v, %q, %q; got %v\nevidence: %s\nremedy: %s", want, b.says, b.do, v.Status, v.Evidence, v.Remedy)
}

// The bad artifacts of the GPU gates and of the gate on two builds are in the tests of
// their packages. Most of device-functions are in functions_test.go.
func TestEveryGateRefusesSomething(t *testing.T) {
	all := corpus()
	for _, g := range All() {
		elsewhere := g.Needs > Container || g.Name == deviceFunctions.Name
		check.That(t, elsewhere || slices.ContainsFunc(all, func(b bad) bool { return b.gate == g.Name }),
			"no bad artifact is refused by %s alone: add one to the corpus", g.Name)
	}
}

const (
	page        = "../../../docs/gates.md"
	refusedPage = "../../../docs/refused.md"
	begin       = "<!-- corpus: written by go test ./internal/gates/gate -update -->\n"
	end         = "<!-- end of corpus -->\n"
)

// The page states the questions in the words of the gates.
func TestGatesAreDocumented(t *testing.T) {
	text := must.Get(os.ReadFile(page))(t)
	rows := strings.ReplaceAll(string(text), "`", "")
	for _, g := range All() {
		row := fmt.Sprintf("| %s | %s | ", g.Name, g.Asks)
		check.That(t, strings.Contains(rows, "\n"+row), "%s has no row %s", page, row)
	}
}

// TestCorpusIsDocumented compares the table with the page, or writes it with -update.
func TestCorpusIsDocumented(t *testing.T) {
	golden.CheckSection(t, refusedPage, begin, end, corpusTable())
}

func corpusTable() string {
	var b strings.Builder
	b.WriteString("\n| bad artifact | gate | says |\n| --- | --- | --- |\n")
	for _, c := range corpus() {
		answer := "fail"
		if c.blind {
			answer = "not-measured"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s: `%s` |\n", c.what, c.gate, answer, strings.ReplaceAll(c.says, "|", `\|`))
	}
	return b.String() + "\n"
}
