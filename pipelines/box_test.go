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
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/lock"
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

// TestSharedWheels: a build takes from its run-time exactly the packages that both have, and
// nothing if the interpreter that compiled them is another.
func TestSharedWheels(t *testing.T) {
	file := func(name, digest string) pypi.File { return pypi.File{Project: name, SHA256: digest} }
	debian := func(digest string, wheels ...pypi.File) lock.Image {
		packages := []deb.Package{{Name: "python3.11", SHA256: "other"}, {Name: "python3.11-minimal", SHA256: digest}}
		return lock.Image{Python: "/usr/bin/python3.11", Pin: lock.ImagePin{Packages: packages}, Wheels: wheels}
	}
	laid := func(digest string, wheels ...pypi.File) lock.Image {
		return lock.Image{Python: "/opt/cpython/bin/python3.12", CPython: &image.CPython{SHA256: digest}, Wheels: wheels}
	}
	site := func(img lock.Image) lock.Image { img.Site = true; return img }
	torch, cmake := file("torch", "1"), file("cmake", "2")
	oldWheel, newWheel := file("wheel", "3"), file("wheel", "4")
	for name, c := range map[string]struct {
		build, runtime lock.Image
		want           []pypi.File
	}{
		"Debian's Python":             {debian("a", torch, cmake, oldWheel), debian("a", newWheel, torch), []pypi.File{torch}},
		"another Python of Debian":    {debian("a", torch), debian("b", torch), nil},
		"a CPython by digest":         {laid("a", torch, cmake), laid("a", torch), []pypi.File{torch}},
		"another CPython":             {laid("a", torch), laid("b", torch), nil},
		"a CPython and Debian's":      {laid("a", torch), debian("a", torch), nil},
		"an image of a registry":      {lock.Image{Python: "/usr/bin/python3", Wheels: []pypi.File{torch}}, lock.Image{Python: "/usr/bin/python3", Wheels: []pypi.File{torch}}, nil},
		"packages of the image's own": {site(debian("a", torch)), site(debian("a", torch)), nil},
		"nothing in common":           {debian("a", cmake), debian("a", torch), nil},
	} {
		got := sharedWheels(lock.Entry{Image: c.build, Runtime: c.runtime})
		check.That(t, slices.Equal(got, c.want), "%s: %v, want %v", name, got, c.want)
	}
}
