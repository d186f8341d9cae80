package profile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"builder/internal/base/diag"
	"builder/internal/plan/matrix"
	"builder/internal/plan/profile"
	"builder/test/kit/check"
	"builder/test/kit/golden"
	"builder/test/kit/must"
	"builder/test/kit/recipetest"
)

// good is a profile with one element of every kind.
const good = `name: stack
summary: A stack
axes:
  - {name: version, about: release, values: ["2.0", "1.10", "1.9"]}
  - {name: lib, about: library, values: ["5", "4"], finer: {because: patch releases are alike, source: "https://example.com/patch"}}
  - {name: fabric, about: fabric, values: [roce, socket]}
released-with:
  rows:
    - {version: ">=2.0", lib: "5"}
    - {version: "<2.0", lib: "4"}
  because: this release pins another lib
  source: https://example.com/pins
compatible:
  - when: {version: "1.9"}
    needs: {fabric: socket}
    because: 1.9 has no RDMA
    source: https://example.com/rdma
settings:
  - {env: NET, value: IB, when: {fabric: roce}, because: no fallback, source: "https://example.com/net", known: source}
  - {env: NET, value: Socket, when: {fabric: socket}, because: nothing else, source: "https://example.com/net", known: documented}
  - {env: DEBUG, value: INFO, replaceable: true, where: every process, because: a witness, source: "https://example.com/debug", known: reported}
  - {option: --sync_backend, value: gloo, when: {version: "<2.0"}, because: it hangs, source: "https://example.com/sync", known: unconfirmed}
  - {option: --sync.backend, value: gloo, when: {version: ">=2.0"}, because: it hangs, source: "https://example.com/sync", known: unconfirmed}
notes:
  - {when: {lib: "4"}, text: lib 4 counts no GPUs, source: "https://example.com/count"}
contradictions:
  - {when: {fabric: roce}, has: {NO_RDMA: "1"}, because: it takes RDMA away, source: "https://example.com/off", instead: leave it out}
  - {has: {MASK: "?*", OTHER: "*"}, because: one hides the other, source: "https://example.com/mask", instead: unset MASK}
  - {has: {LOW: "*"}, lacks: [HIGH], because: LOW alone is an error, source: "https://example.com/low", instead: set HIGH}
  - {has: {--sync.backend: gloo, --share: "*"}, because: sharing needs nccl, source: "https://example.com/share", instead: leave --share out}
`

func parse(t testing.TB, text string) *profile.Profile {
	t.Helper()
	return must.Get(profile.Parse("stack.yaml", []byte(text)))(t)
}

// said lists all settings, with "!" after those of the user.
func said(e profile.Environment) string {
	var parts []string
	for _, v := range append(append([]profile.Value{}, e.Variables...), e.Options...) {
		text := v.Name + "=" + v.Value
		if v.Asked {
			text += "!"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

func TestResolve(t *testing.T) {
	p := parse(t, good)
	for name, c := range map[string]struct {
		filter matrix.Filter
		asked  []profile.Asked
		want   string
		lib    string
		notes  int
	}{
		"no axes named":             {nil, nil, "NET=IB DEBUG=INFO --sync.backend=gloo", "5", 0},
		"follows the named axis":    {matrix.Filter{"lib": "4"}, nil, "NET=IB DEBUG=INFO --sync_backend=gloo", "4", 1},
		"newest of a short version": {matrix.Filter{"version": "1.10"}, nil, "NET=IB DEBUG=INFO --sync_backend=gloo", "4", 1},
		"rule decides":              {matrix.Filter{"version": "1.9"}, nil, "NET=Socket DEBUG=INFO --sync_backend=gloo", "4", 1},
		"released otherwise":        {matrix.Filter{"version": "2.0", "lib": "4"}, nil, "NET=IB DEBUG=INFO --sync.backend=gloo", "4", 2},
		"a finer release":           {matrix.Filter{"lib": "5.1"}, nil, "NET=IB DEBUG=INFO --sync.backend=gloo", "5", 1},
		"added":                     {nil, []profile.Asked{{"A", "1"}, {"--b", ""}}, "NET=IB DEBUG=INFO A=1! --sync.backend=gloo --b=!", "5", 0},
		"the same":                  {nil, []profile.Asked{{"NET", "IB"}}, "NET=IB! DEBUG=INFO --sync.backend=gloo", "5", 0},
		"replaced":                  {nil, []profile.Asked{{"DEBUG", "WARN"}}, "NET=IB DEBUG=WARN! --sync.backend=gloo", "5", 0},
		"one of a pair":             {nil, []profile.Asked{{"MASK", "0"}}, "NET=IB DEBUG=INFO MASK=0! --sync.backend=gloo", "5", 0},
		"empty is unset":            {nil, []profile.Asked{{"MASK", ""}, {"OTHER", ""}}, "NET=IB DEBUG=INFO MASK=! OTHER=! --sync.backend=gloo", "5", 0},
		"not lacking":               {nil, []profile.Asked{{"LOW", "1"}, {"HIGH", "1"}}, "NET=IB DEBUG=INFO LOW=1! HIGH=1! --sync.backend=gloo", "5", 0},
		"elsewhere":                 {matrix.Filter{"fabric": "socket"}, []profile.Asked{{"NO_RDMA", "1"}}, "NET=Socket DEBUG=INFO NO_RDMA=1! --sync.backend=gloo", "5", 0},
	} {
		e, err := p.Resolve(c.filter, c.asked)
		check.That(t, err == nil && said(e) == c.want && e.Axes["lib"] == c.lib && len(e.Notes) == c.notes,
			"%s: got %s with lib %s and notes %v, %v", name, said(e), e.Axes["lib"], e.Notes, err)
	}
}

func TestRefused(t *testing.T) {
	p := parse(t, good)
	for name, c := range map[string]struct {
		filter matrix.Filter
		asked  []profile.Asked
		want   []string // each occurs in one error
	}{
		"against the profile":     {nil, []profile.Asked{{"NET", "Socket"}}, []string{"NET=Socket (given) contradicts NET=IB (profile): no fallback (https://example.com/net)"}},
		"against the combination": {nil, []profile.Asked{{"NO_RDMA", "1"}}, []string{"NO_RDMA=1 (given) contradicts fabric roce: it takes RDMA away (https://example.com/off)"}},
		"contradict each other":   {nil, []profile.Asked{{"MASK", "0"}, {"OTHER", ""}}, []string{"MASK=0 (given) and OTHER= (given) contradict each other: one hides the other"}},
		"with missing settings":   {nil, []profile.Asked{{"LOW", "1"}}, []string{"LOW=1 (given): LOW alone is an error"}},
		"an option":               {nil, []profile.Asked{{"--share", ""}}, []string{"--share (given) and --sync.backend gloo (profile) contradict each other: sharing needs nccl"}},
		"requested twice":         {nil, []profile.Asked{{"A", "1"}, {"A", "2"}}, []string{"A=2 and A=1 are both given"}},
		"all at once": {
			nil,
			[]profile.Asked{{"NET", "Socket"}, {"NO_RDMA", "1"}, {"LOW", "1"}},
			[]string{"NET=Socket", "NO_RDMA=1", "LOW=1"},
		},
		"unknown value":   {matrix.Filter{"version": "3.0"}, nil, []string{`--version: "3.0" is not a known value`}},
		"several":         {matrix.Filter{"fabric": "all"}, nil, []string{"a profile needs one combination, and the flags select 2"}},
		"not together":    {matrix.Filter{"version": "1.9", "fabric": "roce"}, nil, []string{"--fabric roce --version 1.9: not compatible: 1.9 has no RDMA (https://example.com/rdma)"}},
		"an unknown axis": {matrix.Filter{"gpu": "x"}, nil, []string{`no axis "gpu"`}},
	} {
		_, err := p.Resolve(c.filter, c.asked)
		errs := diag.All(err)
		if len(errs) != len(c.want) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: %d faults of class %v: %v", name, len(errs), diag.CodeOf(err), err)
			continue
		}
		for i, want := range c.want {
			check.That(t, strings.Contains(errs[i].Error(), want), "%s: got %v, want %s", name, errs[i], want)
		}
	}
}

func TestLines(t *testing.T) {
	e := must.Get(parse(t, good).Resolve(matrix.Filter{"version": "2.0", "lib": "4"}, []profile.Asked{{"A", "1,2"}, {"--b", "x"}}))(t)
	golden.Check(t, "environment.env", []byte(e.Lines()))
}

// The JSON output matches its schema.
func TestJSON(t *testing.T) {
	valid := recipetest.Validator(t, recipetest.Schema(&profile.Environment{}))
	for _, asked := range [][]profile.Asked{nil, {{"A", "1"}, {"--b", ""}}} {
		e := must.Get(parse(t, good).Resolve(nil, asked))(t)
		text, err := json.Marshal(e)
		must.Succeed(t, err, valid(text))
	}
	check.That(t, valid([]byte(`{}`)) != nil, "an empty environment follows the schema")
}

func TestFaultsOfAFile(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"file name":                      {"name: stack", "name: other", `stack.yaml:1:7: the profile has the name "other", and its file "stack"`},
		"axis twice":                     {"{name: lib,", "{name: version,", `stack.yaml:5:12: axis "version" occurs twice`},
		"value of lines":                 {"[roce, socket]", `[roce, "so\ncket"]`, ` "so\ncket"`},
		"value twice":                    {"[roce, socket]", "[roce, socket, roce]", `value "roce" is empty or occurs twice`},
		"unknown axis":                   {"when: {fabric: roce}, because: no fallback", "when: {fabirc: roce}, because: no fallback", `stack.yaml:19:42: unknown axis "fabirc"`},
		"no such value":                  {"when: {fabric: roce}, because: no fallback", "when: {fabric: ib}, because: no fallback", "the axis fabric has no value ib"},
		"constraint of lines":            {`{version: ">=2.0", lib: "5"}`, `{version: ">=2.0,\nfoo", lib: "5"}`, "must be one line"},
		"no constraint":                  {`{version: ">=2.0", lib: "5"}`, `{version: ">=", lib: "5"}`, `">=" is not a constraint`},
		"neither":                        {"{env: NET, value: IB", "{value: IB", "a setting must have either env or option"},
		"no variable":                    {"{env: NET, value: IB", "{env: N-ET, value: IB", `"N-ET" is not the name of a variable`},
		"no option":                      {"option: --sync_backend", "option: -s", `"-s" is not an option`},
		"value with a command":           {"value: Socket", "value: $(id)", "needs quotes, which are not supported"},
		"reason missing":                 {"because: a witness, ", "", "settings.because is missing"},
		"full stop":                      {"because: a witness", "because: a witness.", "one line without a full stop"},
		"no link":                        {"https://example.com/debug", "http://example.com", "is not an https link"},
		"known":                          {"known: source", "known: surely", `settings.known: "surely" is not source or documented`},
		"pattern":                        {`{NO_RDMA: "1"}`, `{NO_RDMA: "["}`, `"[" is not a pattern`},
		"contradiction without settings": {`has: {NO_RDMA: "1"}, `, "", "a contradiction must have at least one setting"},
		"invalid setting":                {"lacks: [HIGH]", "lacks: [hi gh]", `"hi gh" is not a variable or an option`},
		"instead missing":                {", instead: leave it out", "", "contradictions.instead is missing"},
		"rule without needs":             {"    needs: {fabric: socket}\n", "", "a rule must have either needs or one-of"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		must.Hold(t, text != good, "%s: nothing was replaced", name)
		if _, err := profile.Parse("stack.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), c.want) || diag.CodeOf(err) != diag.Usage {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// Two settings of the same name for one combination are an error of the profile.
func TestTwoSettings(t *testing.T) {
	p := parse(t, strings.Replace(good, "{fabric: socket}, because: nothing else", `{version: "2.0"}, because: nothing else`, 1))
	_, err := p.Resolve(nil, nil)
	check.Fails(t, err, "stack.yaml:20:5: two settings for NET where fabric roce")
}

func TestWhatAUserAdds(t *testing.T) {
	for text, want := range map[string]profile.Asked{
		"A=1": {"A", "1"}, "A=": {"A", ""}, "NCCL_SOCKET_IFNAME=^docker0,lo": {"NCCL_SOCKET_IFNAME", "^docker0,lo"}, "A=b=c": {"A", "b=c"},
	} {
		got, err := profile.ReadVariable(text)
		check.That(t, err == nil && got == want, "%q: got %v, %v", text, got, err)
	}
	for text, want := range map[string]profile.Asked{
		"--a.b": {"--a.b", ""}, "a_b=2": {"--a_b", "2"}, "--x=y=z": {"--x", "y=z"},
	} {
		got, err := profile.ReadOption(text)
		check.That(t, err == nil && got == want, "%q: got %v, %v", text, got, err)
	}
	for _, text := range []string{"", "A", "=1", "1A=1", "A B=1", "A=b c", "A=$(id)", "A=`id`", "A=hush'", "A=hush\nB=1", "A=hush\"", "A=ä"} {
		got, err := profile.ReadVariable(text)
		check.That(t, err != nil && !strings.Contains(err.Error(), "hush"), "%q: got %v, %v", text, got, err)
		got, err = profile.ReadOption("--x " + text)
		check.That(t, err != nil, "--x %q: got %v", text, got)
	}
}

func FuzzParse(f *testing.F) {
	// The seeds are small. With a whole profile, the fuzzer spends its time on
	// minimizing it.
	const head = "name: stack\nsummary: A stack\naxes:\n  - {name: v, about: release, values: [\"2.0\", \"1.9\"]}\n"
	const why = "because: it hangs, source: \"https://example.com/x\""
	const one = "settings:\n  - {env: C, value: d, " + why + ", known: source}\n"
	for _, text := range []string{
		"settings:\n  - {env: A, value: b, replaceable: true, where: here, " + why + ", known: source}\n",
		"settings:\n  - {option: --a.b, value: c, when: {v: \">=2.0\"}, " + why + ", known: reported}\n",
		one + "compatible:\n  - when: {v: \"1.9\"}\n    needs: {v: \"2.0\"}\n    " + strings.ReplaceAll(why, ", ", "\n    ") + "\n",
		one + "contradictions:\n  - {has: {A: \"?*\"}, lacks: [B], " + why + ", instead: unset A}\n",
		one + "notes:\n  - {when: {v: \"1.9\"}, text: it is old, source: \"https://example.com/x\"}\n",
	} {
		parse(f, head+text)
		f.Add([]byte(head + text))
	}
	f.Add([]byte("name: fuzz\naxes: [{name: a, about: b, values: [c]}]\nsettings: [{env: A, value: b}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := profile.Parse("stack.yaml", data)
		if err != nil {
			check.That(t, diag.CodeOf(err) == diag.Usage, "class %v: %v", diag.CodeOf(err), err)
			return
		}
		e, err := p.Resolve(nil, nil)
		if err != nil {
			return // the profile has no combination
		}
		for line := range strings.Lines(e.Lines()) {
			name, _, assigns := strings.Cut(line, "=")
			check.That(t, line == "\n" || strings.HasPrefix(line, "#") || (assigns && !strings.ContainsAny(name, " \t$`")),
				"a line that is neither variable nor comment: %q", line)
		}
	})
}
