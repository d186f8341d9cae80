package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/app/build"
	"builder/internal/app/plan"
	"builder/internal/evidence/attest"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/plan/matrix"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// A forgery is a home of which others wrote a part.
type forgery struct {
	t    *testing.T
	s    *build.Setup   // of the victim, who has a passed result
	evil string         // home of somebody else, who has a passed result of the same cell with other bytes
	of   plan.Selection // the cell
}

// bring replaces files of the victim's home by those of the other home.
func (f forgery) bring(names ...string) {
	f.t.Helper()
	for _, name := range names {
		to := filepath.Join(f.s.Keys.Home, name)
		err := os.RemoveAll(to)
		if info, _ := os.Stat(filepath.Join(f.evil, name)); info.IsDir() {
			err = errors.Join(err, os.CopyFS(to, os.DirFS(filepath.Join(f.evil, name))))
		} else {
			err = errors.Join(err, os.Link(filepath.Join(f.evil, name), to))
		}
		must.Succeed(f.t, err)
	}
}

// record edits the victim's only record.
func (f forgery) record(edit func([]byte) []byte) {
	f.t.Helper()
	records, err := filepath.Glob(filepath.Join(f.s.Keys.Home, "store/results/*.json"))
	must.Hold(f.t, err == nil && len(records) == 1, "%v %v", records, err)
	data, err := os.ReadFile(records[0])
	must.Succeed(f.t, err, os.WriteFile(records[0], edit(data), 0o600))
}

// blobs replaces content by other content of the same size in every blob of the store
// that holds it, and writes the records of a check that a writer on another host can
// write.
func (f forgery) blobs(was, is string) {
	f.t.Helper()
	files := must.Get(filepath.Glob(filepath.Join(f.s.Keys.Home, "store/sha256/*/*")))(f.t)
	n := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		bad := bytes.ReplaceAll(data, []byte(was), []byte(is))
		must.Hold(f.t, err == nil && len(bad) == len(data), "%v %v", file, err)
		if bytes.Equal(bad, data) {
			continue
		}
		n++
		before, err := os.Stat(file)
		must.Succeed(f.t, err, os.Chmod(file, 0o644), os.WriteFile(file, bad, 0o644), os.Chtimes(file, before.ModTime(), before.ModTime()))
		checked := filepath.Join(f.s.Keys.Home, "store/checked", filepath.Base(file))
		mark, err := os.ReadFile(checked)
		words := strings.Fields(string(mark))
		must.Hold(f.t, err == nil && len(words) == 5, "%q, %v", mark, err)
		words[0] = "0f8fad5b-d9cb-469f-a165-70867728950e" // the id of another boot
		must.Succeed(f.t, os.WriteFile(checked, []byte(strings.Join(words, " ")+"\n"), 0o600))
	}
	must.Hold(f.t, n != 0, "no blob holds %q", was)
}

// own gives the victim a key outside of the home.
func (f forgery) own() {
	f.t.Helper()
	f.s.Keys.Key = filepath.Join(f.t.TempDir(), "signing.pem")
	must.Succeed(f.t, signing.NewKeyFile(f.s.Keys.Key))
}

// Whatever others wrote to a home, such as one in a cache of CI, run reports no pass that
// this host did not see: it builds the cell, or refuses.
func TestForgedHome(t *testing.T) {
	const honest, evil = "name = 'tiny'\n", "name = 'evil'\n"
	cases := map[string]struct {
		forge func(forgery)
		known bool   // the victim's own result still counts
		says  string // the refusal, "" for a build
	}{
		"nothing":                          {func(forgery) {}, true, ""},
		"the store of another home":        {func(f forgery) { f.bring("store") }, false, ""},
		"a public key too":                 {func(f forgery) { f.bring("store", "key.pem.pub") }, false, "is not the public half of the key beside it"},
		"a public key, and no private one": {func(f forgery) { f.bring("store", "key.pem.pub"); f.remove("key.pem") }, false, "is not the public half of the key beside it"},
		"a public key, with --key":         {func(f forgery) { f.own(); f.bring("store", "key.pem.pub"); f.remove("key.pem") }, false, ""},
		"a pair of keys, with --key":       {func(f forgery) { f.own(); f.bring("store", "key.pem", "key.pem.pub") }, false, ""},
		"a record that nobody signed":      {func(f forgery) { f.record(payload) }, false, ""},
		"a record with another verdict":    {func(f forgery) { f.record(func(d []byte) []byte { return repacked(f.t, d, `"size"`, `"fuss"`) }) }, false, ""},
		"a record with another digest": {func(f forgery) {
			f.record(func(d []byte) []byte { return repacked(f.t, d, `"sha256":"`, `"sha256":"0`) })
		}, false, ""},
		"a record that is cut":       {func(f forgery) { f.record(func(d []byte) []byte { return d[:len(d)/2] }) }, false, ""},
		"the record of another cell": {func(f forgery) { f.otherCell() }, false, ""},
		"the wheel":                  {func(f forgery) { f.blobs("tiny/__init__.py", "tiny/__evil__.py") }, false, ""},
		"a statement": {func(f forgery) {
			f.blobs(`"payloadType":"application/vnd.in-toto+json"`, `"payloadType":"application/vnd.in-toto+evil"`)
		}, false, ""},
		"all inputs": {func(f forgery) { f.remove("store/results"); f.blobs(source, "CONTENT") }, false, "are not in the store, and --offline was given"},
	}
	other, of := newSession(t, &builds{holds: "tiny", text: evil})
	outOf(t, other, of)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine := &builds{holds: "tiny", text: honest}
			s, of := newSession(t, engine)
			outOf(t, s, of)
			engine.n = 0
			c.forge(forgery{t, s, other.Keys.Home, of})
			out := filepath.Join(t.TempDir(), "out")
			done, err := build.Run(t.Context(), *s, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: out})
			if c.says != "" {
				if err == nil || !strings.Contains(err.Error(), c.says) || len(done.Cells) > 0 && report.StatusOf(done.Cells[0]) == report.Pass {
					t.Errorf("%+v, %v; want %q", done.Cells, err, c.says)
				}
				return
			}
			must.Hold(t, err == nil && len(done.Cells) == 1 && report.StatusOf(done.Cells[0]) == report.Pass && (engine.n == 0) == c.known,
				"built %d times: %+v, %v", engine.n, done.Cells, err)
			wheel := must.Get(artifact.Of(filepath.Join(out, "tiny-1.0", "tiny-1.0-py3-none-any.whl"), ""))(t)
			if data, err := os.ReadFile(wheel.Path); err != nil || bytes.Contains(data, []byte("evil")) || wheel.SHA256 != done.Cells[0].Artifacts[0].SHA256 {
				t.Errorf("the wheel is %s, and run.json says %+v, %v", wheel.SHA256, done.Cells[0].Artifacts, err)
			}
			key := must.Get(s.Keys.Signing())(t)
			_, checks := attest.Verify(wheel, signing.Trust{Keys: []signing.PublicKey{key.Public()}, Now: time.Now()}, attest.Candidate)
			check.That(t, attest.Passed(checks), "by the victim's key alone: %+v", checks)
		})
	}
}

func (f forgery) remove(name string) {
	f.t.Helper()
	must.Succeed(f.t, os.RemoveAll(filepath.Join(f.s.Keys.Home, name)))
}

// otherCell puts the victim's own record of the other release in the place of the record.
func (f forgery) otherCell() {
	f.t.Helper()
	before, err1 := filepath.Glob(filepath.Join(f.s.Keys.Home, "store/results/*.json"))
	of := f.of
	of.Filter = matrix.Filter{"version": "1.1"}
	_, err2 := build.Run(f.t.Context(), *f.s, build.RunRequest{Selection: of, Accept: []string{"all"}, Out: filepath.Join(f.t.TempDir(), "out")})
	after, err3 := filepath.Glob(filepath.Join(f.s.Keys.Home, "store/results/*.json"))
	err := errors.Join(err1, err2, err3)
	must.Hold(f.t, err == nil && len(before) == 1 && len(after) == 2, "%v %v %v", before, after, err)
	for _, record := range after {
		if record != before[0] {
			must.Succeed(f.t, os.Rename(record, before[0]))
		}
	}
}

// payload returns the unsigned content of a record.
func payload(data []byte) []byte {
	_, raw, err := opened(data)
	var s struct {
		Predicate struct{ Result json.RawMessage }
	}
	if err := errors.Join(err, json.Unmarshal(raw, &s)); err != nil {
		panic(err)
	}
	return s.Predicate.Result
}

// repacked returns a signed record with a changed payload and the old signature.
func repacked(t *testing.T, data []byte, was, is string) []byte {
	t.Helper()
	bundle, raw, err := opened(data)
	bad := bytes.Replace(raw, []byte(was), []byte(is), 1)
	must.Hold(t, err == nil && !bytes.Equal(bad, raw), "%q is not in %s, %v", was, raw, err)
	bundle["dsseEnvelope"].(map[string]any)["payload"] = base64.StdEncoding.EncodeToString(bad)
	return must.Get(json.Marshal(bundle))(t)
}

func opened(data []byte) (bundle map[string]any, raw []byte, err error) {
	if err := json.Unmarshal(data, &bundle); err != nil {
		return nil, nil, err
	}
	envelope, ok := bundle["dsseEnvelope"].(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("it is no bundle: %s", data)
	}
	raw, err = base64.StdEncoding.DecodeString(fmt.Sprint(envelope["payload"]))
	return bundle, raw, err
}
