package translog

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	checkpoint "github.com/transparency-dev/formats/log"
	cosignature "github.com/transparency-dev/formats/note"
	"github.com/transparency-dev/formats/witness"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const origin = "example.com/builds"

// A site is a log with its key.
type site struct {
	dir    string
	key    note.Signer
	public note.Verifier
}

func newSite(t *testing.T) site {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		t.Fatal(err)
	}
	s := site{dir: filepath.Join(t.TempDir(), "log")}
	if s.key, err = note.NewSigner(private); err != nil {
		t.Fatal(err)
	}
	if s.public, err = note.NewVerifier(public); err != nil {
		t.Fatal(err)
	}
	if err := Create(s.dir, s.key); err != nil {
		t.Fatal(err)
	}
	return s
}

// at returns the log as a new host sees it.
func (s site) at(t *testing.T, place string) *Log {
	t.Helper()
	return &Log{Place: place, Key: s.public, Memory: t.TempDir()}
}

func (s site) append(t *testing.T, leaves ...Leaf) {
	t.Helper()
	if n, err := s.at(t, s.dir).Append(t.Context(), s.key, leaves); err != nil || n != len(leaves) {
		t.Fatalf("%d of %d, %v", n, len(leaves), err)
	}
}

func leaves(from, to int) (all []Leaf) {
	for i := from; i < to; i++ {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		all = append(all, Leaf{Kind: "k", Subject: fmt.Sprintf("%064d", i%3), Statement: hex.EncodeToString(sum[:]), Name: fmt.Sprint("s", i)})
	}
	return all
}

// copyOf copies a log, as a mirror or an attacker does.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A log that grows in any steps has all entries, in a directory and behind a web server,
// and the tiles of hashes that other readers need.
func TestAppendAndRead(t *testing.T) {
	s := newSite(t)
	server := httptest.NewServer(http.FileServer(http.Dir(s.dir)))
	defer server.Close()
	seen := s.at(t, server.URL+"/") // a host that looks at each step
	at := 0
	for _, n := range []int{0, 1, 2, 255, 256, 257, 512, 513, 1100} {
		if at < n {
			s.append(t, leaves(at, n)...)
		}
		at = n
		for _, l := range []*Log{s.at(t, s.dir), seen} {
			l.Forget()
			all, err := l.All(t.Context())
			if err != nil || len(all) != n {
				t.Fatalf("%d of %d, %v", len(all), n, err)
			}
			for i, want := range leaves(0, n) {
				want.Logged = all[i].Logged
				if all[i] != want || time.Since(want.Logged) > time.Hour {
					t.Errorf("%d: %+v, want %+v", i, all[i], want)
				}
			}
		}
		readHashes(t, s, int64(n))
	}
	if n, err := s.at(t, s.dir).Append(t.Context(), s.key, leaves(0, 1100)); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	about, err := seen.About(t.Context(), leaves(1, 2)[0].Subject)
	if err != nil || len(about) != 367 {
		t.Errorf("%d, %v", len(about), err)
	}
	if err := Create(s.dir, s.key); err == nil {
		t.Error("a log was replaced")
	}
}

// readHashes proves the inclusion of every entry with the tiles on the disk alone.
func readHashes(t *testing.T, s site, n int64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, published))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _, err := checkpoint.ParseCheckpoint(data, origin, s.public)
	if err != nil || int64(head.Size) != n {
		t.Fatalf("%+v, %v", head, err)
	}
	tree := tlog.Tree{N: n, Hash: tlog.Hash(head.Hash)}
	for i := range n {
		if _, err := tlog.ProveRecord(n, i, tlog.TileHashReader(tree, tiles{s.dir})); err != nil {
			t.Fatalf("entry %d of %d: %v", i, n, err)
		}
	}
}

// tiles implements [tlog.TileReader] for a directory.
type tiles struct{ dir string }

func (tiles) Height() int                     { return 8 }
func (tiles) SaveTiles([]tlog.Tile, [][]byte) {}
func (x tiles) ReadTiles(all []tlog.Tile) (data [][]byte, err error) {
	for _, tile := range all {
		one, err := os.ReadFile(filepath.Join(x.dir, path(tile)))
		if err != nil {
			return nil, err
		}
		data = append(data, one)
	}
	return data, nil
}

// Each of these logs is refused, and the reason names the log.
func TestRefused(t *testing.T) {
	s := newSite(t)
	s.append(t, leaves(0, 300)...)
	older := copyOf(t, s.dir)
	s.append(t, leaves(300, 301)...)
	other := newSite(t) // a second history with the same key
	other.key, other.public = s.key, s.public
	if err := os.Remove(filepath.Join(other.dir, published)); err != nil {
		t.Fatal(err)
	}
	if err := Create(other.dir, s.key); err != nil {
		t.Fatal(err)
	}
	other.append(t, leaves(1, 400)...)
	forged := newSite(t) // the same name, and another key
	forged.append(t, leaves(0, 301)...)
	edited := func(name string, edit func([]byte) []byte) string {
		dir := copyOf(t, s.dir)
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, edit(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	missing := copyOf(t, s.dir)
	if err := os.Remove(filepath.Join(missing, "tile/entries/000")); err != nil {
		t.Fatal(err)
	}
	signed := func(text string) func([]byte) []byte {
		return func([]byte) []byte {
			data, err := note.Sign(&note.Note{Text: text}, s.key)
			if err != nil {
				t.Fatal(err)
			}
			return data
		}
	}
	for name, c := range map[string]struct{ place, says string }{
		"an older state":              {older, "is an older state: it has 300 entries, and this host has seen 301"},
		"a second history":            {other.dir, "has a second history: its first 301 entries are not those that this host has seen"},
		"another key":                 {forged.dir, "has a checkpoint that the key " + fmt.Sprintf("%s+%08x", origin, s.public.KeyHash()) + " did not sign"},
		"a changed checkpoint":        {edited(published, func(d []byte) []byte { return bytes.Replace(d, []byte("\n301\n"), []byte("\n302\n"), 1) }), "did not sign"},
		"another origin":              {edited(published, signed("other\n301\n"+base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n")), "did not sign"},
		"a hash of another length":    {edited(published, signed(origin+"\n301\nAAAA\n")), "has entries that do not belong to its checkpoint"},
		"a checkpoint without a size": {edited(published, signed(origin+"\n-5\nAAAA\n")), "did not sign"},
		"a size without end":          {edited(published, signed(origin+"\n18446744073709551615\nAAAA\n")), "has 18446744073709551615 entries; builder reads"},
		"a size that is not there":    {edited(published, signed(origin+"\n100000\nAAAA\n")), "lacks entries"},
		"a long checkpoint":           {edited(published, func(d []byte) []byte { return append(d, make([]byte, maxCheckpoint)...) }), "larger than"},
		"no checkpoint":               {t.TempDir(), "does not exist"},
		"entries removed":             {missing, "lacks entries"},
		"entries cut":                 {edited("tile/entries/000", func(d []byte) []byte { return d[:len(d)-1] }), "ends in entry 255 of 256"},
		"entries emptied":             {edited("tile/entries/000", func([]byte) []byte { return nil }), "ends in entry 0 of 256"},
		"an entry too many":           {edited("tile/entries/000", func(d []byte) []byte { return append(d, 0, 0) }), "has 2 bytes after entry 256"},
		"a length without end":        {edited("tile/entries/000", func(d []byte) []byte { return binary.BigEndian.AppendUint16(nil, 65535) }), "ends in entry 0"},
		"a file without end":          {edited("tile/entries/000", func(d []byte) []byte { return make([]byte, 2<<20) }), "larger than"},
		"an entry exchanged":          {edited("tile/entries/000", func(d []byte) []byte { return bytes.Replace(d, []byte(`"s7"`), []byte(`"s9"`), 1) }), "has entries that do not belong to its checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.FileServer(http.Dir(c.place)))
			defer server.Close()
			for _, place := range []string{c.place, server.URL} {
				l := s.at(t, s.dir)
				if _, err := l.All(t.Context()); err != nil { // the host has seen the right log
					t.Fatal(err)
				}
				l.Forget()
				l.Place = place
				all, err := l.All(t.Context())
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "the log "+origin+" at "+place) || all != nil {
					t.Errorf("%d entries, %v; want %q", len(all), err, c.says)
				}
				l.Forget()
				l.Place = s.dir
				if _, err := l.All(t.Context()); err != nil {
					t.Errorf("the right log, after the wrong one: %v", err)
				}
			}
		})
	}
}

// No byte of an entry can change, and no damage ends in a panic.
func TestEveryByteCounts(t *testing.T) {
	s := newSite(t)
	s.append(t, leaves(0, 3)...)
	file := filepath.Join(s.dir, "tile/entries/000.p/3")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	l := s.at(t, s.dir)
	for i := range data {
		for _, bad := range [][]byte{data[:i], slices.Concat(data[:i], []byte{data[i] ^ 0x41}, data[i+1:])} {
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			l.Forget()
			if _, err := l.All(t.Context()); err == nil {
				t.Fatalf("byte %d of %d changed, and nobody notices", i, len(data))
			}
		}
	}
}

// The memory of a host is bounded and checked like everything that is read.
func TestDamagedMemory(t *testing.T) {
	s := newSite(t)
	s.append(t, leaves(0, 3)...)
	for _, text := range []string{"", "x\n", origin + "\n3\nAAAA\n", origin + "\n18446744073709551615\nAAAA\n", strings.Repeat("x", 1<<20)} {
		l := s.at(t, s.dir)
		if err := os.WriteFile(l.memory(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := l.All(t.Context()); err == nil || !strings.Contains(err.Error(), l.memory()) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Two publishers at the same time lose no entry.
func TestAtTheSameTime(t *testing.T) {
	s := newSite(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { s.append(t, leaves(10*i, 10*i+10)...) })
	}
	all.Wait()
	if got, err := s.at(t, s.dir).All(t.Context()); err != nil || len(got) != 80 {
		t.Errorf("%d, %v", len(got), err)
	}
}

func TestMarks(t *testing.T) {
	s := newSite(t)
	yank := func(subject, because string) Leaf {
		return Leaf{Kind: Yank, Subject: subject, Name: "a.whl", Because: because}
	}
	for i, c := range []struct {
		leaf  Leaf
		added int
	}{
		{Leaf{Kind: Unyank, Subject: "a", Name: "a.whl"}, 0}, // nobody yanked it
		{yank("a", "wrong"), 1},
		{yank("a", "wrong"), 0},
		{yank("b", "wrong"), 1},
		{yank("a", "very wrong"), 1},
		{Leaf{Kind: Unyank, Subject: "a", Name: "a.whl"}, 1},
		{Leaf{Kind: Unyank, Subject: "a", Name: "a.whl"}, 0},
		{yank("a", "wrong"), 1}, // again
		{yank("a", strings.Repeat("x", maxEntry)), -1},
	} {
		n, err := s.at(t, s.dir).Append(t.Context(), s.key, []Leaf{c.leaf})
		if n != max(c.added, 0) || (err != nil) != (c.added < 0) {
			t.Errorf("%d: %d, %v", i, n, err)
		}
	}
}

// A keeper is a witness by C2SP tlog-witness.
type keeper struct {
	t      *testing.T
	log    note.Verifier
	signer *cosignature.Signer
	line   string // of a policy
	mu     sync.Mutex
	seen   tlog.Tree
	away   bool
}

func newKeeper(t *testing.T, s site, name string) *keeper {
	t.Helper()
	private, public, err := note.GenerateKey(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	k := &keeper{t: t, log: s.public}
	if k.signer, err = cosignature.NewSignerForCosignatureV1(private); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(k.answer))
	t.Cleanup(server.Close)
	k.line = fmt.Sprintf("witness %s %s %s\n", name, public, server.URL)
	return k
}

func (k *keeper) answer(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	proof, data, ok := strings.Cut(string(body), "\n\n")
	head, _, _, err2 := checkpoint.ParseCheckpoint([]byte(data), origin, k.log)
	lines := strings.Split(proof, "\n")
	var old int64
	_, err3 := fmt.Sscanf(lines[0], "old %d", &old)
	if k.away || r.URL.Path != "/add-checkpoint" || !ok || err != nil || err2 != nil || err3 != nil {
		http.Error(w, "no", http.StatusForbidden)
		return
	}
	if old != k.seen.N {
		w.Header().Set("Content-Type", "text/x.tlog.size")
		w.WriteHeader(http.StatusConflict)
		fmt.Fprintln(w, k.seen.N)
		return
	}
	var path tlog.TreeProof
	for _, line := range lines[1:] {
		h, err := tlog.ParseHash(line)
		if err != nil {
			k.t.Error(err)
		}
		path = append(path, h)
	}
	next := tlog.Tree{N: int64(head.Size), Hash: tlog.Hash(head.Hash)}
	if old > 0 {
		if err := tlog.CheckTree(path, next.N, next.Hash, old, k.seen.Hash); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
	}
	k.seen = next
	signed, err := note.Sign(&note.Note{Text: data[:strings.Index(data, "\n\n")+1]}, k.signer)
	if err != nil {
		k.t.Error(err)
	}
	_, lineOf, _ := strings.Cut(string(signed), "\n\n")
	_, _ = io.WriteString(w, lineOf)
}

func policy(t *testing.T, text string) witness.Group {
	t.Helper()
	group, err := witness.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return group
}

func TestWitnesses(t *testing.T) {
	s := newSite(t)
	a, b, c := newKeeper(t, s, "a.example"), newKeeper(t, s, "b.example"), newKeeper(t, s, "c.example")
	l := s.at(t, s.dir)
	l.Witnesses = policy(t, a.line+b.line+c.line+"group some 2 a.example b.example c.example\nquorum some\n")
	add := func(from, to int) error {
		t.Helper()
		_, err := l.Append(t.Context(), s.key, leaves(from, to))
		return err
	}
	read := func(policyOf string) (int, error) {
		t.Helper()
		host := s.at(t, s.dir)
		host.Witnesses = policy(t, policyOf)
		all, err := host.All(t.Context())
		return len(all), err
	}
	c.away = true
	if err := add(0, 3); err != nil {
		t.Fatal(err)
	}
	if n, err := read(a.line + b.line + "group both all a.example b.example\nquorum both\n"); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err := read(a.line + c.line + "group both all a.example c.example\nquorum both\n")
	if err == nil || !strings.Contains(err.Error(), "without the signatures of its witnesses: missing are c.example") {
		t.Errorf("%v", err)
	}

	// With too few witnesses, readers see the old entries, and the next publisher catches
	// up: a witness that has signed the new ones refuses any other history.
	b.away = true
	if err := add(3, 5); err == nil || !strings.Contains(err.Error(), "too few signatures of witnesses") || !strings.Contains(err.Error(), "b.example at http") {
		t.Fatalf("%v", err)
	}
	if n, err := read(a.line + "quorum a.example\n"); n != 3 || err != nil || a.seen.N != 5 {
		t.Errorf("%d, %v; the witness has seen %d", n, err, a.seen.N)
	}
	b.away = false
	if err := add(5, 6); err != nil {
		t.Fatal(err)
	}
	c.away = false // and has seen nothing yet
	if err := add(6, 7); err != nil {
		t.Fatal(err)
	}
	if n, err := read(a.line + b.line + c.line + "group every all a.example b.example c.example\nquorum every\n"); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}

	// A second history gets no signature.
	other := newSite(t)
	other.key, other.public = s.key, s.public
	l.Place, l.Memory = other.dir, t.TempDir()
	if err := os.Remove(filepath.Join(other.dir, published)); err != nil {
		t.Fatal(err)
	}
	if err := Create(other.dir, s.key); err != nil {
		t.Fatal(err)
	}
	if err := add(7, 20); err == nil || !strings.Contains(err.Error(), "it answered 422") {
		t.Errorf("%v", err)
	}
}

// A witness whose answer is wrong does not count.
func TestHostileWitness(t *testing.T) {
	s := newSite(t)
	var answer string
	code := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	k := newKeeper(t, s, "a.example")
	fields := strings.Fields(k.line)
	l := s.at(t, s.dir)
	l.Witnesses = policy(t, fmt.Sprintf("witness a.example %s %s\nquorum a.example\n", fields[2], server.URL))
	for _, c := range []struct {
		code   int
		answer string
	}{
		{200, ""}, {200, "— a.example AAAA\n"}, {200, strings.Repeat("— a.example AAAAAAAA\n", 10000)}, {200, "— x\x00\n\n"},
		{409, "99999999999"}, {409, "-1"}, {409, "x"}, {409, "1"}, {302, ""}, {500, ""},
	} {
		code, answer = c.code, c.answer
		if n, err := l.Append(t.Context(), s.key, leaves(0, 2)); n > 0 && err == nil {
			t.Errorf("%d %.30q counts", c.code, c.answer)
		}
	}
	if all, err := s.at(t, s.dir).All(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// BenchmarkRead reads a log of a hundred thousand statements from a web server.
func BenchmarkRead(b *testing.B) {
	private, public, err := note.GenerateKey(rand.Reader, origin)
	if err != nil {
		b.Fatal(err)
	}
	key, err1 := note.NewSigner(private)
	verifier, err2 := note.NewVerifier(public)
	dir := filepath.Join(b.TempDir(), "log")
	if err1 != nil || err2 != nil || Create(dir, key) != nil {
		b.Fatal(err1, err2)
	}
	l := &Log{Place: dir, Key: verifier, Memory: b.TempDir()}
	var all []Leaf
	for i := range 100_000 {
		all = append(all, Leaf{Kind: "https://in-toto.io/attestation/test-result/v0.1", Subject: fmt.Sprintf("%064d", i/6), Statement: fmt.Sprintf("%064d", i), Name: "verdicts-20261123T150405Z-0a0b0c0d.sigstore.json"})
	}
	if _, err := l.Append(b.Context(), key, all); err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	l.Place = server.URL
	for b.Loop() {
		l.Forget()
		if got, err := l.All(b.Context()); err != nil || len(got) != len(all) {
			b.Fatal(len(got), err)
		}
	}
}
