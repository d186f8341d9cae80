package gate

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"builder/internal/gates/verdict"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// allRequests returns the script's output for a sealed rendezvous with other outcomes
// for some requests. An empty outcome omits the request.
func allRequests(other map[string]string) string {
	var said struct {
		Requests []request `json:"requests"`
	}
	for _, kind := range []string{"hostile", "honest"} {
		for _, name := range requests[kind] {
			r := request{Name: name, Kind: kind, Outcome: map[string]string{"hostile": "refused", "honest": "served"}[kind], Detail: "seen: " + name}
			if outcome, ok := other[name]; ok {
				r.Outcome = outcome
			}
			if r.Outcome != "" {
				said.Requests = append(said.Requests, r)
			}
		}
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err) // unreachable: strings only
	}
	return string(text) + "\n"
}

// asReleased returns the script's output for upstream's releases of Horovod 0.25.0 to
// 0.28.1.
func asReleased() map[string]string {
	fired := map[string]string{}
	for _, name := range requests["hostile"] {
		fired[name] = "fired"
	}
	return fired
}

// badRequests lists launchers accepting values from strangers, or from no one.
func badRequests() []bad {
	const (
		seal      = "lacks the patch rendezvous-seal"
		lookAgain = "not-measured never counts as a pass"
	)
	said := func(what string, blind bool, says, do string, other map[string]string) bad {
		return bad{
			what: what, of: horovodROCm, change: func(s *specimen) { s.box.answers["rendezvous"] = Result{Output: allRequests(other)} },
			gate: "rendezvous", blind: blind, says: says, do: do,
		}
	}
	printed := func(what, output string, exit int, says string) bad {
		b := said(what, true, says, lookAgain, nil)
		b.change = func(s *specimen) { s.box.answers["rendezvous"] = Result{Exit: exit, Output: output} }
		return b
	}
	return []bad{
		said("upstream's Horovod, which unpickles data from any host", false, "attack pickled-registration had an effect: seen: pickled-registration; attack connect-back", seal, asReleased()),
		said("registrations as JSON from any host: the driver connects to the named address", false, "attack connect-back had an effect", seal, map[string]string{"connect-back": "fired"}),
		said("the key of a worker's port is given to any host", false, "attack stolen-key had an effect", seal, map[string]string{"stolen-key": "fired"}),
		said("sealed values accepted under any name", false, "attack replayed-value had an effect", seal, map[string]string{"replayed-value": "fired"}),
		said("a sealed elastic rendezvous beside a store without seals", false, "attack replaced-function had an effect: seen: replaced-function; attack replaced-result", seal, map[string]string{"replaced-function": "fired", "replaced-result": "fired"}),
		said("a launcher that accepts malformed values as sealed", false, "attack malformed-body had an effect", seal, map[string]string{"malformed-body": "fired"}),
		said("a rendezvous that refuses its own workers", false, "honest request registration failed: seen: registration", "holds half of it", map[string]string{"registration": "broken"}),
		said("a rendezvous that requires seals of the C++ code, which has none", false, "honest request native-scopes failed", "holds half of it", map[string]string{"native-scopes": "broken"}),
		said("one attack with an effect, and another without a report", false, "attack oversized-value had an effect: seen: oversized-value", seal, map[string]string{"oversized-value": "fired", "stolen-key": ""}),
		said("an attack without a report", true, "no report of connect-back", lookAgain, map[string]string{"connect-back": ""}),
		said("an honest request without a report", true, "no report of function-and-result", lookAgain, map[string]string{"function-and-result": ""}),
		said("an attack that did not run", true, "attack replaced-function did not run: seen: replaced-function", lookAgain, map[string]string{"replaced-function": "broken"}),
		said("an attack with the outcome \"served\"", true, `malformed-key has the unknown outcome "served"`, lookAgain, map[string]string{"malformed-key": "served"}),
		printed("Python crashes after the attacks", allRequests(nil)+"Segmentation fault\n", 139, "exit 139"),
		printed("the script of the attacks reports nothing", "", 0, "no report of pickled-registration"),
		printed("the launcher's modules do not import", "ModuleNotFoundError: No module named 'horovod.runner'\n", 1, "exit 1: ModuleNotFoundError"),
	}
}

func TestRendezvousThatIsPromised(t *testing.T) {
	answering := func(output string) func(*specimen) { return printing("rendezvous", output, 0) }
	v := checked(t, rendezvous, answering("a warning\n"+allRequests(nil)))
	check.That(t, v.Status == verdict.Pass && v.Evidence == "10 attacks refused, 3 honest requests served", "%+v", v)
	v = checked(t, rendezvous, func(s *specimen) { s.expect.Gates["rendezvous"] = "open" })
	judged(t, v, verdict.NotMeasured, `"open" is not sealed`)
	// A request with the other kind is another request.
	swapped := strings.Replace(allRequests(nil), `"name":"stolen-key","kind":"hostile"`, `"name":"stolen-key","kind":"honest"`, 1)
	judged(t, checked(t, rendezvous, answering(swapped)), verdict.NotMeasured, "no report of stolen-key")
}

var scriptRow = regexp.MustCompile(`(?m)^@(hostile|honest)\ndef (\w+)\(`)

// The gate knows exactly the requests of the script.
func TestRequestsAreThoseOfTheScript(t *testing.T) {
	made := map[string][]string{}
	for _, m := range scriptRow.FindAllStringSubmatch(files("rendezvous.py")["rendezvous.py"], -1) {
		made[m[1]] = append(made[m[1]], strings.ReplaceAll(m[2], "_", "-"))
	}
	for kind, names := range requests {
		check.That(t, slices.Equal(names, made[kind]), "%s: the gate knows %q, the script makes %q", kind, names, made[kind])
	}
}

// On a host without Horovod the script reports it, and the gate does not pass.
func TestRendezvousWithoutHorovod(t *testing.T) {
	h := newHost(t)
	judged(t, h.ask(t, rendezvous, horovodROCm()), verdict.NotMeasured, "ModuleNotFoundError")
}

// TestRendezvousOfATree checks the source tree of Horovod in BUILDER_TEST_HOROVOD with
// the python3 in PATH, which needs cloudpickle, psutil, PyYAML and packaging.
func TestRendezvousOfATree(t *testing.T) {
	tree := os.Getenv("BUILDER_TEST_HOROVOD")
	if tree == "" {
		t.Skip("BUILDER_TEST_HOROVOD names no source tree of Horovod")
	}
	python := must.Get(exec.LookPath("python3"))(t)
	t.Setenv("PYTHONPATH", tree)
	v := rendezvous.Check(t.Context(), Subject{Expect: expect(), Box: host{python: python, work: t.TempDir()}})
	source := must.Get(os.ReadFile(filepath.Join(tree, "horovod", "runner", "common", "util", "secret.py")))(t)
	want := verdict.Fail
	if strings.Contains(string(source), "open_sealed") {
		want = verdict.Pass
	}
	check.That(t, v.Status == want && (want != verdict.Fail || strings.Count(v.Evidence, "had an effect") == len(requests["hostile"])),
		"%+v", v)
}
