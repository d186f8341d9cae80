package results_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"builder/internal/build/results"
	"builder/internal/build/run"
	"builder/internal/evidence/signing"
	"builder/internal/files/artifact"
	"builder/internal/gates/gate"
	"builder/internal/gates/verdict"
	"builder/internal/input/store"
	"builder/internal/plan/lock"
	"builder/internal/view/report"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

func open(t *testing.T, dir string) (*results.Results, *store.Store) {
	t.Helper()
	s := must.Get(store.Open(dir))(t)
	return results.New(s), s
}

func entry(id string) lock.Entry { return lock.Entry{Schema: lock.EntrySchema, ID: id} }

// made writes artifacts into a directory and returns their result.
func made(t *testing.T, contents ...string) run.Result {
	t.Helper()
	dir := t.TempDir()
	r := run.Result{
		Verdicts: []verdict.Verdict{
			{Gate: "import", Status: verdict.Pass, Evidence: "it imports", Seconds: 1.5},
			{Gate: "busbw", Status: verdict.Pass, Evidence: "as fast"},
		},
		Steps:  []report.Step{{Name: "build", Seconds: 80}},
		Canary: `{"reached":[]}`,
		Gates:  gate.Digest(),
	}
	for i, content := range contents {
		path := filepath.Join(dir, fmt.Sprintf("a-%d.whl", i))
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o644))
		a := must.Get(artifact.Of(path, ""))(t)
		r.Artifacts = append(r.Artifacts, a)
	}
	return r
}

func keep(t *testing.T, r *results.Results, e lock.Entry, result run.Result) {
	t.Helper()
	must.Succeed(t, r.Keep(e, result))
}

// has reports whether a store has the result of the entry with this key.
func has(r *results.Results, key string) bool {
	_, ok := r.Known(key)
	return ok
}

// absent fails the test if the result, or a part of it, is found.
func absent(t *testing.T, r *results.Results, e lock.Entry) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	got, ok, err := r.Find(e.Key(), dir)
	check.That(t, !ok && err == nil, "found %+v, %v", got, err)
	_, err = os.Stat(dir)
	check.That(t, errors.Is(err, fs.ErrNotExist), "something was laid out: %v", err)
}

func TestKeepAndFind(t *testing.T) {
	home := t.TempDir()
	r, _ := open(t, home)
	e, want := entry("cell"), made(t, "wheel", "another")
	check.That(t, !has(r, e.Key()), "has what nobody kept")
	absent(t, r, e)
	keep(t, r, e, want)

	r, _ = open(t, home) // another process
	check.That(t, has(r, e.Key()) && !has(r, entry("other").Key()),
		"has it: %v, has another: %v", has(r, e.Key()), has(r, entry("other").Key()))
	dir := filepath.Join(t.TempDir(), "out", "cell")
	for range 2 { // the second time all files are in place
		got, ok, err := r.Find(e.Key(), dir)
		must.Hold(t, ok && err == nil, "%v, %v", ok, err)
		for i := range want.Artifacts {
			want.Artifacts[i].Path, want.Artifacts[i].Key = filepath.Join(dir, want.Artifacts[i].Name), e.Key()
		}
		check.Same(t, "values", want, got)
		for _, a := range got.Artifacts {
			found, err := artifact.Of(a.Path, e.Key())
			check.That(t, err == nil && found == a, "%s is %+v, %v", a.Path, found, err)
			if info, err := os.Stat(a.Path); err != nil || info.Mode().Perm() != 0o644 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		}
	}
	entries, err := os.ReadDir(dir)
	check.That(t, err == nil && len(entries) == 2, "%v, %v", entries, err)
}

func TestTheLastResultStands(t *testing.T) {
	r, _ := open(t, t.TempDir())
	dir := t.TempDir()
	for _, content := range []string{"first", "second", "first"} {
		keep(t, r, entry("cell"), made(t, content))
		got, ok, err := r.Find(entry("cell").Key(), dir)
		must.Hold(t, ok && err == nil, "%v, %v", ok, err)
		// A file of an earlier run in the same place is replaced.
		data, err := os.ReadFile(got.Artifacts[0].Path)
		check.That(t, err == nil && string(data) == content, "%q, %v", data, err)
	}
}

// The user's copy and the store's are separate files.
func TestWhatIsFoundIsTheUsers(t *testing.T) {
	r, _ := open(t, t.TempDir())
	keep(t, r, entry("cell"), made(t, "wheel"))
	dir := t.TempDir()
	got, _, err := r.Find(entry("cell").Key(), dir)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(got.Artifacts[0].Path, []byte("mine"), 0o644))
	got, ok, err := r.Find(entry("cell").Key(), dir)
	must.Hold(t, ok && err == nil, "%v, %v", ok, err)
	data, err := os.ReadFile(got.Artifacts[0].Path)
	check.That(t, err == nil && string(data) == "wheel", "%q, %v", data, err)
}

func TestDamagedRecordsAreNoResults(t *testing.T) {
	good := must.Get(json.Marshal(made(t, "wheel")))(t)
	named := func(name string) []byte { return bytes.ReplaceAll(good, []byte(`"a-0.whl"`), []byte(`"`+name+`"`)) }
	for name, record := range map[string][]byte{
		"empty":                        {},
		"cut":                          good[:len(good)/2],
		"null":                         []byte("null"),
		"without artifacts":            []byte(`{"verdicts": []}`),
		"of another type":              bytes.Replace(good, []byte(`"size":5`), []byte(`"size":"5"`), 1),
		"with an unknown word":         bytes.Replace(good, []byte(`"pass"`), []byte(`"perfect"`), 1),
		"of another size":              bytes.Replace(good, []byte(`"size":5`), []byte(`"size":6`), 1),
		"of another digest":            bytes.Replace(good, []byte(`"sha256":"`), []byte(`"sha256":"00`), 1),
		"without a name":               named(""),
		"a name outside the directory": named("../a-0.whl"),
		"the parent as name":           named(".."),
		"an absolute name":             named("/a-0.whl"),
	} {
		t.Run(name, func(t *testing.T) {
			r, s := open(t, t.TempDir())
			e := entry("cell")
			keep(t, r, e, made(t, "wheel"))
			must.Hold(t, !bytes.Equal(record, good), "the record is not damaged")
			must.Succeed(t, s.Documents().Put(e.Key(), record))
			check.That(t, !has(r, e.Key()), "has it")
			absent(t, r, e)
			// The cell is built again and then has a result.
			keep(t, r, e, made(t, "wheel"))
			check.That(t, has(r, e.Key()), "a new result does not replace it")
		})
	}
}

func TestDamagedArtifactsAreNoResults(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone":        os.Remove,
		"cut":         func(path string) error { return errors.Join(os.Chmod(path, 0o644), os.Truncate(path, 2)) },
		"overwritten": func(path string) error { return overwrite(path, []byte("wheeL")) },
		"a directory": func(path string) error { _ = os.Remove(path); return os.Mkdir(path, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			r, s := open(t, t.TempDir())
			e, result := entry("cell"), made(t, "intact", "wheel")
			keep(t, r, e, result)
			a := result.Artifacts[1]
			path, ok := s.Path(store.Blob{Name: a.Name, Size: a.Size, SHA256: a.SHA256})
			must.Hold(t, ok, "it is not in the store")
			must.Succeed(t, damage(path))
			absent(t, r, e)
			check.That(t, !has(r, e.Key()), "has it after it was found damaged")
			if name != "a directory" {
				keep(t, r, e, made(t, "intact", "wheel"))
				_, ok, err := r.Find(e.Key(), t.TempDir())
				check.That(t, ok && err == nil, "not mended by the next build: %v, %v", ok, err)
			}
		})
	}
}

// overwrite changes a read-only file, like a failing disk.
func overwrite(path string, data []byte) error {
	if err := os.Chmod(path, 0o644); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o444)
}

func TestKeepRefusesWhatTheGatesDidNotSee(t *testing.T) {
	r, _ := open(t, t.TempDir())
	changed, gone := made(t, "intact", "wheel"), made(t, "intact", "wheel")
	must.Succeed(t, os.WriteFile(changed.Artifacts[1].Path, []byte("other"), 0o644))
	err := r.Keep(entry("changed"), changed)
	check.Fails(t, err, "keeping a-1.whl: the file changed after its gates: expected sha256 "+changed.Artifacts[1].SHA256)
	must.Succeed(t, os.Remove(gone.Artifacts[1].Path))
	check.Fails(t, r.Keep(entry("gone"), gone), "a-1.whl")
	for _, id := range []string{"changed", "gone"} {
		check.That(t, !has(r, entry(id).Key()), "%s: has it all the same", id)
	}
}

func TestFindWhereItCannotWrite(t *testing.T) {
	r, _ := open(t, t.TempDir())
	keep(t, r, entry("cell"), made(t, "wheel"))
	file := must.File(t, "file", "")
	taken := t.TempDir()
	must.Succeed(t, os.MkdirAll(filepath.Join(taken, "a-0.whl", "x"), 0o755))
	for _, dir := range []string{file, filepath.Join(file, "below"), taken} {
		_, ok, err := r.Find(entry("cell").Key(), dir)
		check.That(t, !ok && err != nil, "%s: %v, %v", dir, ok, err)
	}
	left, err := fs.Glob(os.DirFS(taken), ".place-*")
	check.That(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

func TestCheckForgetsWhatIsDamaged(t *testing.T) {
	r, s := open(t, t.TempDir())
	good, bad := entry("good"), entry("bad")
	keep(t, r, good, made(t, "wheel"))
	result := made(t, "shared", "damaged")
	keep(t, r, bad, result)
	a := result.Artifacts[1]
	got, err := r.Without([]store.Kept{{SHA256: a.SHA256}}, true)
	check.That(t, err == nil && len(got) == 1 && got[0] == bad.Key() && has(r, bad.Key()), "without a file: %v, %v", got, err)
	path, _ := s.Path(store.Blob{SHA256: a.SHA256})
	must.Succeed(t, r.Check(), os.Chmod(path, 0o644), os.WriteFile(path, []byte("evil"), 0o644), s.Documents().Put("unreadable", []byte("{")))
	err = r.Check()
	for _, want := range []string{"result " + bad.Key(), a.Name, "result unreadable"} {
		check.Fails(t, err, want)
	}
	check.That(t, has(r, good.Key()) && !has(r, bad.Key()) && len(s.Documents().Keys()) == 1, "left: %v", s.Documents().Keys())
	err = r.Check()
	check.That(t, err == nil, "again: %v", err)
}

// signed returns results signed with the key in a file, whose signatures alone count.
func signed(s *store.Store, key string, notes *[]string) *results.Results {
	note := func(format string, args ...any) { *notes = append(*notes, fmt.Sprintf(format, args...)) }
	return results.Signed(s, signing.Keys{Key: key, Note: note})
}

// A gate may have become stricter since it let an artifact pass.
func TestAResultOfOtherGatesIsNoResult(t *testing.T) {
	key := filepath.Join(t.TempDir(), "own.pem")
	must.Succeed(t, signing.NewKeyFile(key))
	for gates, counts := range map[string]bool{gate.Digest(): true, run.Published: true, "": false, strings.Repeat("0", 64): false} {
		_, s := open(t, t.TempDir())
		var notes []string
		r, e, result := signed(s, key, &notes), entry("cell"), made(t, "wheel")
		result.Gates = gates
		keep(t, r, e, result)
		_, ok, err := r.Find(e.Key(), filepath.Join(t.TempDir(), "out"))
		check.That(t, ok == counts && has(r, e.Key()) == counts && err == nil, "%q: %v, %v", gates, ok, err)
		told := len(notes) == 1 && strings.Contains(notes[0], "the gates of this one have to run")
		check.That(t, told != counts, "%q: told %q", gates, notes)
		must.Succeed(t, r.Check())
	}
}

// A record in a shared store counts only if the key of the host signed it for that very
// cell.
func TestAForgedRecordIsNoResult(t *testing.T) {
	own, stranger := filepath.Join(t.TempDir(), "own.pem"), filepath.Join(t.TempDir(), "stranger.pem")
	must.Succeed(t, signing.NewKeyFile(own), signing.NewKeyFile(stranger))
	e, other := entry("cell"), entry("other")
	for what, forge := range map[string]func(s *store.Store) error{
		"no signature": func(s *store.Store) error { return results.New(s).Keep(e, made(t, "evil")) },
		"an untrusted signature": func(s *store.Store) error {
			return signed(s, stranger, new([]string)).Keep(e, made(t, "evil"))
		},
		"a record of another cell": func(s *store.Store) error {
			err := signed(s, own, new([]string)).Keep(other, made(t, "other"))
			data, _ := s.Documents().Get(other.Key())
			return errors.Join(err, s.Documents().Put(e.Key(), data))
		},
		"its verdicts were changed": func(s *store.Store) error {
			err := signed(s, own, new([]string)).Keep(e, made(t, "good"))
			data, _ := s.Documents().Get(e.Key())
			var bundle map[string]any
			err = errors.Join(err, json.Unmarshal(data, &bundle))
			envelope := bundle["dsseEnvelope"].(map[string]any)
			payload, decoding := base64.StdEncoding.DecodeString(envelope["payload"].(string))
			envelope["payload"] = base64.StdEncoding.EncodeToString(bytes.Replace(payload, []byte("it imports"), []byte("it flies!!"), 1))
			data, encoding := json.Marshal(bundle)
			return errors.Join(err, decoding, encoding, s.Documents().Put(e.Key(), data))
		},
	} {
		t.Run(what, func(t *testing.T) {
			_, s := open(t, t.TempDir())
			must.Succeed(t, forge(s))
			var notes []string
			r := signed(s, own, &notes)
			check.That(t, !has(r, e.Key()), "it is known")
			absent(t, r, e)
			check.That(t, len(notes) == 1 && strings.HasPrefix(notes[0], "ignoring result "+e.Key()+" in the store: "), "told: %q", notes)
			all := must.Get(s.Survey())(t)
			keys, err := results.New(s).Without(all, true)
			check.That(t, err == nil && len(keys) != 0, "what it names cannot be listed: %v, %v", keys, err)
			keep(t, r, e, made(t, "good"))
			_, ok, err := r.Find(e.Key(), filepath.Join(t.TempDir(), "out"))
			check.That(t, ok && err == nil, "of its own: %v, %v", ok, err)
		})
	}
}
