package pipelines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"dagger.io/dagger"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/parser"

	"builder/internal/gates/gate"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A rememberingEngine answers like an engine with a cache: a query that it has seen
// gets the first answer again. Each new exec ends with the next of exits.
type rememberingEngine struct {
	exits []int
	ran   int
	known map[string]int // exit of an exec, by the chain of fields that leads to it
}

func (e *rememberingEngine) Host() string { return "engine" }
func (e *rememberingEngine) Close() error { return nil }

// Do answers a query, which is a chain of fields.
func (e *rememberingEngine) Do(r *http.Request) (*http.Response, error) {
	var asked struct{ Query string }
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return nil, err
	}
	query, err := parser.ParseQuery(&ast.Source{Input: asked.Query})
	if err != nil {
		return nil, err
	}
	var names, calls []string
	for fields := query.Operations[0].SelectionSet; len(fields) > 0; fields = fields[0].(*ast.Field).SelectionSet {
		f := fields[0].(*ast.Field)
		var given []string // the client writes the arguments in any order
		for _, a := range f.Arguments {
			given = append(given, a.Name+": "+a.Value.String())
		}
		slices.Sort(given)
		names, calls = append(names, f.Name), append(calls, fmt.Sprint(f.Name, given))
	}
	last := len(names) - 1
	exec := strings.Join(calls[:last], "\n")
	var answer any
	switch names[last] {
	case "stdout":
		answer = fmt.Sprintf("%s1\nexit %d\n", stampPrefix, e.exit(exec))
	case "exitCode":
		answer = e.exit(exec)
	default:
		answer = "id"
	}
	for i := last; i >= 0; i-- {
		answer = map[string]any{names[i]: answer}
	}
	data, err := json.Marshal(map[string]any{"data": answer})
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(data))}, err
}

func (e *rememberingEngine) exit(exec string) int {
	if _, seen := e.known[exec]; !seen {
		e.known[exec] = e.exits[e.ran]
		e.ran++
	}
	return e.known[exec]
}

// A gate that failed once, on a busy host, runs again in the next run and not from the
// cache of the engine. Output and exit code come from the same exec.
func TestAGateIsNeverTakenFromTheCache(t *testing.T) {
	engine := &rememberingEngine{exits: []int{3, 0}, known: map[string]int{}}
	client := must.Get(dagger.Connect(t.Context(), dagger.WithConn(engine)))(t)
	for _, want := range engine.exits {
		b := box{&session{client: client, bubblewrap: "/bwrap"}, client.Container(), venvDir}
		got := must.Get(b.Run(t.Context(), gate.Command{Name: "load", Args: []string{"PYTHON", "load.py"}}))(t)
		check.That(t, got.Exit == want && got.Output == fmt.Sprintf("exit %d\n", want), "the gate ends with %+v, want exit %d", got, want)
	}
	check.That(t, engine.ran == 2, "%d execs, want 2", engine.ran)
}
