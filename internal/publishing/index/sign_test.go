package index_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/internal/evidence/signing"
	"builder/internal/input/store"
	"builder/internal/publishing/index"
)

// signer returns a signer with a key and a memory of its own.
func signer(t *testing.T) *index.Signer {
	t.Helper()
	k, err := signing.NewKey(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return &index.Signer{
		Key:    func() (signing.Key, error) { return k, nil },
		Trust:  signing.Trust{Keys: []signing.PublicKey{k.Public()}, Now: time.Now()},
		Memory: signing.Memory(t.TempDir()),
	}
}

func passes(index.Record) ([]byte, error) { return nil, nil }

// signedIndex returns a signed index of two wheels and one archive.
func signedIndex(t *testing.T) (*index.Index, string) {
	t.Helper()
	x, dir := open(t)
	x.Signer = signer(t)
	add(t, x, publication(t, 1, "one"))
	tree := publication(t, 3, "tree")
	tree.Wheel, tree.Metadata, tree.Beside, tree.Record.Project = file(t, "tree-1.0.tar.gz", "tree"), nil, nil, "tree"
	add(t, x, tree)
	if _, err := x.Sign(t.Context(), passes, false); err != nil {
		t.Fatal(err)
	}
	add(t, x, publication(t, 2, "two"))
	return x, dir
}

// check verifies the index as another host.
func check(t *testing.T, x *index.Index, place string) ([]string, error) {
	t.Helper()
	_, wrong, err := index.Signed(t.Context(), store.Place(place), x.Signer.Trust, signing.Memory(t.TempDir()))
	return wrong, err
}

const wheel1 = "files/tool/tool-1.1+cuda13.0-py3-none-any.whl"

func TestSignedChanges(t *testing.T) {
	x, dir := signedIndex(t)
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Fatalf("%q, %v", wrong, err)
	}
	if err := x.Withdraw(t.Context(), key(2)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Yank(t.Context(), key(1), "wrong sums"); err != nil {
		t.Fatal(err)
	}
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Errorf("after changes: %q, %v", wrong, err)
	}
	unsigned, other := open(t)
	add(t, unsigned, publication(t, 1, "one"))
	if _, err := os.Stat(filepath.Join(other, index.SignatureFile)); err == nil {
		t.Error("an index is signed that nobody asked to sign")
	}
}

func TestSignedRefuses(t *testing.T) {
	write := func(t *testing.T, dir, name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change  func(t *testing.T, dir string)
		want    string
		wheel   bool // only the wheel differs: a web server's index is not read so far
		unnamed bool // a web server does not list it
	}{
		"another wheel": {func(t *testing.T, dir string) { write(t, dir, wheel1, "evil") }, wheel1 + " has sha256 ", true, false},
		"no wheel":      {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, wheel1)) }, wheel1 + " is missing", true, false},
		"another statement": {func(t *testing.T, dir string) { write(t, dir, wheel1+".attestations/provenance.sigstore.json", "{}") },
			wheel1 + ".attestations/provenance.sigstore.json has sha256 ", true, false},
		"a wheel more":       {func(t *testing.T, dir string) { write(t, dir, "files/tool/tool-9-py3-none-any.whl", "evil") }, "files/tool/tool-9-py3-none-any.whl is not signed", false, true},
		"a project more":     {func(t *testing.T, dir string) { write(t, dir, "simple/numpy/index.html", "evil") }, "simple/numpy/index.html is not signed", false, true},
		"a page":             {func(t *testing.T, dir string) { write(t, dir, "simple/tool/index.html", "evil") }, "simple/tool/index.html has sha256 ", false, false},
		"the page for users": {func(t *testing.T, dir string) { write(t, dir, "index.html", "evil") }, "index.html has sha256 ", false, false},
		"a record":           {func(t *testing.T, dir string) { write(t, dir, wheel1+".record.json", "{}") }, wheel1 + ".record.json has sha256 ", false, false},
		"no key":             {func(_ *testing.T, dir string) { os.Remove(filepath.Join(dir, "keys", key(1)+".json")) }, "keys/" + key(1) + ".json is missing", false, false},
		"a link": {func(_ *testing.T, dir string) {
			os.Rename(filepath.Join(dir, "index.html"), filepath.Join(dir, "page"))
			os.Symlink("page", filepath.Join(dir, "index.html"))
		}, "symbolic link", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			x, dir := signedIndex(t)
			server := httptest.NewServer(http.FileServer(http.Dir(dir)))
			defer server.Close()
			c.change(t, dir)
			wrong, err := check(t, x, dir)
			if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], c.want) {
				t.Errorf("%q, %v, want %q", wrong, err, c.want)
			}
			far, err := check(t, x, server.URL)
			if err != nil || (len(far) == 1) == (c.wheel || c.unnamed) || len(far) == 1 && !strings.Contains(far[0], c.want) {
				t.Errorf("behind a web server: %q, %v", far, err)
			}
			if c.wheel {
				return
			}
			_, err = x.Add(t.Context(), publication(t, 4, "four"))
			own, says := !strings.Contains(c.want, "tool-9"), c.want
			if name == "a record" { // with the remedy for a record that cannot be read
				says = "reading a record of the index: schema 0"
				_, signing := x.Sign(t.Context(), passes, false)
				for _, err := range []error{err, signing} {
					if all := diag.All(err); len(all) == 0 || !strings.HasPrefix(all[0].Hint, "restore the file from a copy. ") {
						t.Errorf("the hint is not that of the record: %v", err)
					}
				}
			}
			if own != (err != nil) || err != nil && (diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), says)) {
				t.Errorf("publishing: %v", err)
			}
		})
	}
}

func TestSignedRefusesOlderStates(t *testing.T) {
	x, dir := signedIndex(t)
	old := t.TempDir()
	if err := os.CopyFS(old, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	add(t, x, publication(t, 5, "five"))
	memory := signing.Memory(t.TempDir())
	if _, wrong, err := index.Signed(t.Context(), store.Place(dir), x.Signer.Trust, memory); err != nil || len(wrong) > 0 {
		t.Fatalf("%q, %v", wrong, err)
	}
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(old))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := index.Signed(t.Context(), store.Place(dir), x.Signer.Trust, memory); err == nil || !strings.Contains(err.Error(), "this host has seen a newer one") {
		t.Errorf("%v", err)
	}
	if _, err := x.Add(t.Context(), publication(t, 6, "six")); err == nil || !strings.Contains(err.Error(), "this host has seen a newer one") {
		t.Errorf("the publisher: %v", err)
	}
	// A removed signature does not let the publisher go on without one.
	if err := os.Remove(filepath.Join(dir, index.SignatureFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Add(t.Context(), publication(t, 6, "six")); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), index.SignatureFile) {
		t.Errorf("without a signature: %v", err)
	}
	if _, err := check(t, x, dir); err == nil {
		t.Error("an index without a signature passes")
	}
}

func TestSignedByWhom(t *testing.T) {
	x, dir := signedIndex(t)
	stranger := signer(t)
	if _, _, err := index.Signed(t.Context(), store.Place(dir), stranger.Trust, stranger.Memory); !errors.Is(err, signing.ErrStranger) {
		t.Errorf("%v", err)
	}
	limited := x.Signer.Trust
	limited.Keys[0].Grant = signing.Grant{File: "trust.yaml", Roles: []signing.Role{signing.Maker}}
	if _, _, err := index.Signed(t.Context(), store.Place(dir), limited, stranger.Memory); err == nil || !strings.Contains(err.Error(), "which trust.yaml limits: it does not have the role publisher") {
		t.Errorf("%v", err)
	}
	limited.Keys[0].Grant.Roles = []signing.Role{signing.Publisher}
	if _, wrong, err := index.Signed(t.Context(), store.Place(dir), limited, stranger.Memory); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
	for name, s := range map[string]*index.Signer{"a publisher of another key": stranger, "no signer": nil} {
		y := index.Open(dir)
		y.Signer = s
		if _, err := y.Add(t.Context(), publication(t, 7, "seven")); diag.CodeOf(err) != diag.Publish {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A statement about something else is no signature of an index.
	k, _ := x.Signer.Key()
	other, err := signing.Sign(k, []byte(`{"_type":"https://in-toto.io/Statement/v1","predicateType":"urn:builder:trust:v1"}`))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, index.SignatureFile), other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := check(t, x, dir); err == nil || !strings.Contains(err.Error(), `the signature is about a "urn:builder:trust:v1"`) {
		t.Errorf("%v", err)
	}
}

// Sign mends the index of an interrupted publication, and signs nothing that does not verify.
func TestSignedAgain(t *testing.T) {
	x, dir := signedIndex(t)
	signature := read(t, dir, index.SignatureFile)
	add(t, x, publication(t, 6, "six"))
	if err := os.WriteFile(filepath.Join(dir, index.SignatureFile), []byte(signature), 0o600); err != nil {
		t.Fatal(err)
	}
	x.Signer.Memory = signing.Memory(t.TempDir())
	if _, err := x.Add(t.Context(), publication(t, 6, "six")); diag.CodeOf(err) != diag.Publish {
		t.Fatalf("%v", err)
	}
	bad := errors.New("no trusted key signed it")
	if _, err := x.Sign(t.Context(), func(index.Record) ([]byte, error) { return nil, bad }, false); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
	if _, err := x.Sign(t.Context(), passes, false); err != nil {
		t.Fatal(err)
	}
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
	signature = read(t, dir, index.SignatureFile)
	if err := os.WriteFile(filepath.Join(dir, wheel1), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Sign(t.Context(), passes, false); err == nil || !strings.Contains(err.Error(), wheel1+" has sha256") {
		t.Errorf("%v", err)
	}
	if read(t, dir, index.SignatureFile) != signature {
		t.Error("a refused Sign took the signature away")
	}
	if wrong, err := check(t, x, dir); err != nil || len(wrong) != 1 {
		t.Errorf("the changed wheel: %q, %v", wrong, err)
	}
}

// A key that is not trusted as a publisher changes no signed index, and signs none.
func TestSignedByAPublisherAlone(t *testing.T) {
	x, dir := signedIndex(t)
	signature := read(t, dir, index.SignatureFile)
	builder, err := signing.NewKey(time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	limited := builder.Public()
	limited.Grant.Roles = []signing.Role{signing.Maker}
	x.Signer.Key = func() (signing.Key, error) { return builder, nil }
	for name, trusted := range map[string][]signing.PublicKey{"not trusted": nil, "another role": {limited}} {
		before := x.Signer.Trust.Keys
		x.Signer.Trust.Keys = append(slices.Clone(before), trusted...)
		_, added := x.Add(t.Context(), publication(t, 7, "seven"))
		_, yanked := x.Yank(t.Context(), key(1), "wrong sums")
		_, signed := x.Sign(t.Context(), passes, false)
		for _, err := range []error{added, yanked, signed} {
			if diag.CodeOf(err) != diag.Usage || !strings.Contains(err.Error(), "is not trusted in the role publisher") {
				t.Errorf("%s: %v", name, err)
			}
		}
		x.Signer.Trust.Keys = before
	}
	if read(t, dir, index.SignatureFile) != signature {
		t.Error("the signature changed")
	}
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
}

// Sign does not sign a record that was changed behind its signature: the mark of a yanked
// wheel would be gone with the publisher's consent.
func TestSignRefusesAChangedRecord(t *testing.T) {
	x, dir := signedIndex(t)
	if _, err := x.Yank(t.Context(), key(1), "wrong sums"); err != nil {
		t.Fatal(err)
	}
	signature := read(t, dir, index.SignatureFile)
	path := filepath.Join(dir, wheel1+".record.json")
	record := strings.Replace(read(t, dir, wheel1+".record.json"), "wrong sums", "", 1)
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Sign(t.Context(), passes, false); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "changed since it was signed: "+wheel1+".record.json") {
		t.Errorf("%v", err)
	}
	if read(t, dir, index.SignatureFile) != signature {
		t.Error("the signature changed")
	}
	stranger := signer(t)
	theirs, err := func() ([]byte, error) {
		k, err := stranger.Key()
		if err != nil {
			return nil, err
		}
		return signing.Sign(k, []byte("{}"))
	}()
	if err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(path string) error{
		"has no signature, and this host has seen one": os.Remove,
		"does not count: an untrusted key signed it":   func(path string) error { return os.WriteFile(path, theirs, 0o600) },
		"does not count: ":                             func(path string) error { return os.WriteFile(path, []byte("{}"), 0o600) },
	} {
		if err := change(filepath.Join(dir, index.SignatureFile)); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Sign(t.Context(), passes, false); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if err := os.WriteFile(filepath.Join(dir, index.SignatureFile), []byte(signature), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := x.Sign(t.Context(), passes, true); err != nil { // the publisher accepts the change
		t.Error(err)
	}
}

// Sign makes the files of keys and the metadata again from the records and wheels. Signed
// as they are, an older file of a key would let builder take a yanked wheel, and pip
// would refuse a wheel with damaged metadata.
func TestSignMakesAgainWhatItCan(t *testing.T) {
	keyFile, meta := "keys/"+key(1)+".json", wheel1+".metadata"
	for name, c := range map[string]struct {
		file, text string // an empty text removes the file
	}{
		"an older key": {keyFile, "older"}, "a damaged key": {keyFile, "x"}, "no key": {keyFile, ""}, "the key of another wheel": {keyFile, "other"},
		"damaged metadata": {meta, "Name: evil\n"}, "no metadata": {meta, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x, dir := signedIndex(t)
			texts := map[string]string{"older": read(t, dir, keyFile), "other": read(t, dir, "keys", key(2)+".json")}
			if _, err := x.Yank(t.Context(), key(1), "wrong sums"); err != nil {
				t.Fatal(err)
			}
			err := os.Remove(filepath.Join(dir, c.file))
			if text := cmp.Or(texts[c.text], c.text); text != "" {
				err = os.WriteFile(filepath.Join(dir, c.file), []byte(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.Sign(t.Context(), passes, false); c.file == meta && diag.CodeOf(err) != diag.Publish {
				t.Errorf("METADATA of the wheel cannot be read: %v", err)
			}
			wheelHas := func(index.Record) ([]byte, error) { return []byte("Name: tool\n"), nil }
			if _, err := x.Sign(t.Context(), wheelHas, false); err != nil {
				t.Fatal(err)
			}
			if r, err := x.Find(t.Context(), key(1)); err != nil || r.Yanked != "wrong sums" {
				t.Errorf("the key leads to %+v, %v", r, err)
			}
			if text := read(t, dir, meta); text != "Name: tool\n" {
				t.Errorf("the metadata is %q", text)
			}
			if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
				t.Errorf("%q, %v", wrong, err)
			}
		})
	}
}

// A yank holds for whoever takes a wheel from a signed index, also if somebody puts an
// older file of its key back.
func TestGuard(t *testing.T) {
	x, dir := signedIndex(t)
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	keyFile := filepath.Join(dir, "keys", key(1)+".json")
	older, signature := read(t, keyFile), read(t, dir, index.SignatureFile)
	if _, err := x.Yank(t.Context(), key(1), "wrong sums"); err != nil {
		t.Fatal(err)
	}
	newer := read(t, dir, index.SignatureFile)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, at := range map[string]interface {
		Find(ctx context.Context, key string) (index.Record, error)
		Place() string
	}{"directory": x, "web server": index.OpenRemote(server.URL+"/", nil)} {
		check := func(g index.Guard) string {
			r, err := at.Find(t.Context(), key(1))
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(g.Check(t.Context(), at.Place(), r))
		}
		fresh := func() index.Guard {
			return index.Guard{Trust: x.Signer.Trust, Memory: signing.Memory(t.TempDir())}
		}
		seen, strange := fresh(), fresh()
		strange.Trust = signer(t).Trust
		yanked := read(t, keyFile)
		if got := check(seen) + check(strange); got != "<nil><nil>" {
			t.Errorf("%s: %s", name, got)
		}
		write(keyFile, older)
		if got := check(fresh()); !strings.Contains(got, "is not as its index was signed") {
			t.Errorf("%s: an older key: %s", name, got)
		}
		write(filepath.Join(dir, index.SignatureFile), signature)
		if got := check(seen); !strings.Contains(got, "does not count") {
			t.Errorf("%s: an older key and signature: %s", name, got)
		}
		if err := os.Remove(filepath.Join(dir, index.SignatureFile)); err != nil {
			t.Fatal(err)
		}
		if got := check(seen); !strings.Contains(got, "does not count") {
			t.Errorf("%s: no signature any more: %s", name, got)
		}
		if got := check(fresh()); got != "<nil>" {
			t.Errorf("%s: never signed: %s", name, got)
		}
		write(filepath.Join(dir, index.SignatureFile), newer)
		write(keyFile, yanked)
	}
}

// A publication restores a wheel and its metadata in a signed index. Damaged metadata of
// another wheel stays refused.
func TestSignedRestores(t *testing.T) {
	x, dir := signedIndex(t)
	for _, name := range []string{wheel1, wheel1 + ".metadata"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	add(t, x, publication(t, 6, "six"))
	if wrong, err := check(t, x, dir); err != nil || !slices.Equal(wrong, []string{wheel1 + " is missing", wheel1 + ".metadata is missing"}) {
		t.Errorf("%q, %v", wrong, err)
	}
	added, err := x.Add(t.Context(), publication(t, 1, "one"))
	if want := []string{path.Base(wheel1), path.Base(wheel1) + ".metadata"}; err != nil || !slices.Equal(added.Repaired, want) {
		t.Errorf("%+v, %v", added, err)
	}
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
}

// The requirements file belongs to its cell: Signed compares it behind a web server too,
// because pip installs what it names, and it leaves with the last wheel that lists it.
func TestRequirementsOfACell(t *testing.T) {
	x, dir := signedIndex(t)
	const name = "tool-9.requirements.txt"
	for n, text := range map[int]string{8: "eight", 9: "nine"} {
		p := publication(t, n, text)
		p.Beside[name] = file(t, name, "tool==9")
		add(t, x, p)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	path := filepath.Join(dir, "files/tool", name)
	for text, bad := range map[string]int{"tool==9\nevil": 1, "tool==9": 0} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if wrong, err := check(t, x, server.URL); err != nil || len(wrong) != bad {
			t.Errorf("%q: %q, %v", text, wrong, err)
		}
	}
	if err := os.WriteFile(path, []byte("tool==9"), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, n := range []int{8, 9} {
		if err := x.Withdraw(t.Context(), key(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); (err == nil) != (i == 0) {
			t.Errorf("after %d withdrawals: %v", i+1, err)
		}
		if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
			t.Errorf("after %d withdrawals: %q, %v", i+1, wrong, err)
		}
	}
}

// A refused Sign does not make the last signature count as an older one.
func TestARefusedSignIsNotRemembered(t *testing.T) {
	x, dir := signedIndex(t)
	stray := filepath.Join(dir, "files/tool/x.metadata")
	if err := os.WriteFile(stray, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Sign(t.Context(), passes, false); diag.CodeOf(err) != diag.Publish || !strings.Contains(err.Error(), "no record lists files/tool/x.metadata") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
	if _, wrong, err := index.Signed(t.Context(), store.Place(dir), x.Signer.Trust, x.Signer.Memory); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
	add(t, x, publication(t, 6, "six"))
}

// A publication that ended before its record is given again.
func TestSignedResumes(t *testing.T) {
	x, dir := signedIndex(t)
	p := publication(t, 6, "six")
	other, from := open(t)
	add(t, other, p)
	name := "files/tool/" + p.Wheel.Name + ".metadata"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(read(t, from, name)[:1]), 0o600); err != nil {
		t.Fatal(err)
	}
	add(t, x, p)
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
}

// An index that was removed whole begins again, signed.
func TestSignedBeginsAgain(t *testing.T) {
	x, dir := signedIndex(t)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	add(t, x, publication(t, 6, "six"))
	if wrong, err := check(t, x, dir); err != nil || len(wrong) > 0 {
		t.Errorf("%q, %v", wrong, err)
	}
}

// Where a trust file names the publishers, the host's own key is none of them.
func TestSignedByANamedPublisher(t *testing.T) {
	x, _ := signedIndex(t)
	x.Signer.Trust.Keys[0].Grant = signing.Grant{File: "trust.yaml", Roles: []signing.Role{signing.Publisher}}
	own := signer(t)
	x.Signer.Trust.Keys = append(x.Signer.Trust.Keys, own.Trust.Keys...)
	add(t, x, publication(t, 6, "six"))
	x.Signer.Key = own.Key
	_, yanked := x.Yank(t.Context(), key(1), "wrong sums")
	_, signed := x.Sign(t.Context(), passes, true)
	for _, err := range []error{yanked, signed} {
		if diag.CodeOf(err) != diag.Usage || len(diag.All(err)) != 1 || !strings.HasPrefix(diag.All(err)[0].Hint, "trust.yaml names the publishers") {
			t.Errorf("%v", err)
		}
	}
}
