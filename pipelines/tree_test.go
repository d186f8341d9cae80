package pipelines

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"dagger.io/dagger"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// modes is an engine that only returns file modes.
type modes struct{ query, answer string }

func (*modes) Host() string { return "engine" }
func (*modes) Close() error { return nil }

// Do answers a query of the SDK.
func (m *modes) Do(req *http.Request) (*http.Response, error) {
	var asked struct{ Query string }
	if err := json.NewDecoder(req.Body).Decode(&asked); err != nil {
		return nil, err
	}
	m.query = asked.Query
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(m.answer))}, nil
}

// The engine would wait for a writer to a pipe. So only regular files are read.
func TestOnlyARegularFileIsPatched(t *testing.T) {
	engine := &modes{}
	client := must.Get(dagger.Connect(t.Context(), dagger.WithConn(engine)))(t)
	tree := &containerTree{ctr: client.Container()}
	for answer, want := range map[string]diag.Code{
		`{"data":{"container":{"stat":{"fileType":"UNKNOWN"}}}}`:               diag.Build,
		`{"data":{"container":{"stat":{"fileType":"DIRECTORY"}}}}`:             diag.Build,
		`{"errors":[{"message":"stat x: no such file or directory"}]}`:         diag.OK, // the patch says so
		`{"errors":[{"message":"stat x: too many levels of symbolic links"}]}`: diag.OK, // see stepFaults
	} {
		engine.answer = answer
		_, err := tree.ReadFile(t.Context(), "configure.ac")
		check.That(t, err != nil && diag.Worst(err) == want && !strings.Contains(engine.query, "contents"),
			"%s: %v, asked %s", answer, err, engine.query)
	}
}

// The engine's default mode is not named, because that would change the cache key.
func TestAPatchedFileKeepsItsMode(t *testing.T) {
	for mode, named := range map[string]bool{"493": true, "436": true, "420": false} { // 0755, 0664, 0644
		engine := &modes{answer: `{"data":{"container":{"file":{"stat":{"permissions":` + mode + `}}}}}`}
		client := must.Get(dagger.Connect(t.Context(), dagger.WithConn(engine)))(t)
		tree := &containerTree{ctr: client.Container()}
		must.Succeed(t, tree.WriteFile(t.Context(), "bin/run", []byte("new")))
		engine.answer = `{"data":{"container":{"withNewFile":{"stdout":""}}}}`
		must.Get(tree.ctr.Stdout(t.Context()))(t)
		check.That(t, strings.Contains(engine.query, "withNewFile(") && strings.Contains(engine.query, "permissions:"+mode) == named,
			"mode %s: the engine is asked %s", mode, engine.query)
	}
}

// Each error of a patch names the patch and the position of the edit, and its hint the
// audit that finds all versions with the error.
func TestAFailedPatchNamesItsAudit(t *testing.T) {
	at := diag.Pos{File: "ours/patches/dotprod/no-native.yaml", Line: 7, Column: 5}
	err := unpatched("dotprod", "no-native", errors.Join(
		&diag.Error{Pos: at, Code: diag.Patch, Err: errors.New("Makefile: search text matches 0 times, not 1")},
		&diag.Error{Code: diag.Patch, Err: errors.New("b.c: there"), Hint: "state merged"},
	))
	const audit = "`builder patch audit --fetch dotprod` applies the patches to every version, without a build"
	all := diag.All(err)
	if len(all) != 2 || all[0].Code != diag.Patch || all[0].Error() != "patch no-native: ours/patches/dotprod/no-native.yaml:7:5: Makefile: search text matches 0 times, not 1" || all[0].Hint != audit {
		t.Fatalf("%+v", all[0])
	}
	check.That(t, all[1].Hint == "state merged; "+audit && strings.HasPrefix(all[1].Error(), "patch no-native: b.c"), "%+v", all[1])
}
