// Package translog keeps and reads a site's own transparency log: a list of published
// statements that only grows. It has the format of C2SP tlog-tiles, with a checkpoint
// that the log signs and witnesses cosign, in a directory that any web server can serve.
//
//	checkpoint           the number of entries and the hash over them, signed
//	tile/LEVEL/N         hashes, which builder writes for other readers
//	tile/entries/N       256 entries
//
// A reader of this package trusts no tile. It reads all entries and computes the hash of
// the checkpoint itself. This proves the inclusion of every entry at once, and that no
// entry about an artifact is hidden.
package translog

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	checkpoint "github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/formats/witness"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// A Leaf is an entry of a log: a published statement about an artifact, or a mark.
type Leaf struct {
	Kind      string    `json:"kind"`                // predicate type of the statement, [Yank] or [Unyank]
	Subject   string    `json:"subject"`             // sha256 of the artifact
	Statement string    `json:"statement,omitempty"` // sha256 of the bundle; "" for a mark
	Name      string    `json:"name"`                // of the file of the statement; of the artifact for a mark
	Artifact  string    `json:"artifact,omitempty"`  // file name of the artifact; entries from before 2026-11-26 lack it
	Because   string    `json:"because,omitempty"`   // reason of a [Yank]
	Logged    time.Time `json:"logged"`              // by the clock of the log
}

// Kinds of marks. The newest mark of an artifact counts.
const (
	Yank   = "urn:builder:yank:v1"
	Unyank = "urn:builder:unyank:v1"
)

// String names an entry to a person.
func (l Leaf) String() string {
	what := l.Name
	if l.Statement != "" {
		what += " with sha256 " + l.Statement
	}
	return fmt.Sprintf("%s, logged on %s", what, l.Logged.Format(time.DateOnly))
}

// A Log is a log to read. It is read once, when it is first asked.
type Log struct {
	Place     string // directory or URL
	Key       note.Verifier
	Witnesses witness.Group // who must have cosigned the checkpoint
	Memory    string        // directory of the newest checkpoint seen of each log

	mu   sync.Mutex
	done bool
	tree *tree
	err  error
}

// Limits of reading a log. They bound its memory to about 2 GB.
const (
	maxCheckpoint = 64 << 10
	maxEntries    = 1 << 20
	maxEntry      = 4 << 10
	width         = 256 // entries of a tile
)

// String names the log by its origin and its place.
func (l *Log) String() string {
	return fmt.Sprintf("the log %s at %s", l.Key.Name(), store.Place(l.Place))
}

// All returns the entries, oldest first. The result is proven to be all of the log, to
// be signed and cosigned, and to continue what this host has seen before.
func (l *Log) All(ctx context.Context) ([]Leaf, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.done {
		l.tree, l.err = l.read(ctx, published)
		l.done = ctx.Err() == nil
	}
	if l.err != nil {
		return nil, l.err
	}
	return l.tree.leaves, nil
}

// About returns the entries about an artifact, oldest first.
func (l *Log) About(ctx context.Context, sha256 string) ([]Leaf, error) {
	all, err := l.All(ctx)
	var about []Leaf
	for _, leaf := range all {
		if leaf.Subject == sha256 {
			about = append(about, leaf)
		}
	}
	return about, err
}

// Forget lets the next question read the log again.
func (l *Log) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = false
}

// fail returns an error that names the log.
func (l *Log) fail(format string, args ...any) error {
	return fmt.Errorf("%s %w", l, fmt.Errorf(format, args...))
}

// Files with a checkpoint. Only [Log.Append] reads the second: it is signed, and lacks
// cosignatures.
const (
	published = "checkpoint"
	pending   = ".pending"
)

// read reads and checks the whole log by one of its checkpoints.
func (l *Log) read(ctx context.Context, name string) (*tree, error) {
	data, err := l.file(ctx, name, maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, l.fail("does not exist: %w", err)
	} else if err != nil {
		return nil, l.fail("cannot be read: %w", err)
	}
	head, _, _, err := checkpoint.ParseCheckpoint(data, l.Key.Name(), l.Key)
	switch {
	case err != nil:
		return nil, l.fail("has a checkpoint that the key %s+%08x did not sign: %w", l.Key.Name(), l.Key.KeyHash(), err)
	case name == published && head.Size > 0 && !l.Witnesses.Satisfied(data):
		return nil, l.fail("has a checkpoint without the signatures of its witnesses: %s", l.cosigned(data))
	case head.Size > maxEntries:
		return nil, l.fail("has %d entries; builder reads %d", head.Size, maxEntries)
	}
	seen, err := l.remembered()
	if err != nil {
		return nil, err
	}
	if seen != nil && head.Size < seen.Size {
		return nil, l.fail("is an older state: it has %d entries, and this host has seen %d", head.Size, seen.Size)
	}
	t := &tree{}
	if err := l.entries(ctx, t, int64(head.Size)); err != nil {
		return nil, err
	}
	if root := t.root(t.size()); !bytes.Equal(root[:], head.Hash) {
		return nil, l.fail("has entries that do not belong to its checkpoint: their hash is %s", root)
	}
	if seen != nil {
		if root := t.root(int64(seen.Size)); !bytes.Equal(root[:], seen.Hash) {
			return nil, l.fail("has a second history: its first %d entries are not those that this host has seen; see %s", seen.Size, l.memory())
		}
	}
	for i, data := range t.data {
		var leaf Leaf
		if err := json.Unmarshal(data, &leaf); err != nil {
			return nil, l.fail("has an entry %d that is not of builder: %w", i, err)
		}
		t.leaves = append(t.leaves, leaf)
	}
	if name == published {
		err = l.remember(data, head.Size)
	}
	return t, err
}

// cosigned says which witnesses signed a checkpoint.
func (l *Log) cosigned(data []byte) string {
	var missing []string
	for _, key := range l.Witnesses.Endpoints() {
		if _, err := note.Open(data, note.VerifierList(key)); err != nil {
			missing = append(missing, key.Name())
		}
	}
	slices.Sort(missing)
	return "missing are " + strings.Join(missing, ", ")
}

// entries reads n entries.
func (l *Log) entries(ctx context.Context, t *tree, n int64) error {
	for at := int64(0); at < n; at += width {
		tile := tlog.Tile{H: 8, L: -1, N: at / width, W: int(min(width, n-at))}
		data, err := l.file(ctx, path(tile), width*(2+maxEntry))
		if err != nil {
			return l.fail("lacks entries: %w", err)
		}
		for i := range tile.W {
			if len(data) < 2 || len(data)-2 < int(binary.BigEndian.Uint16(data)) {
				return l.fail("has a damaged file of entries: %s ends in entry %d of %d", path(tile), i, tile.W)
			}
			end := 2 + int(binary.BigEndian.Uint16(data))
			t.add(data[2:end])
			data = data[end:]
		}
		if len(data) > 0 {
			return l.fail("has a damaged file of entries: %s has %d bytes after entry %d", path(tile), len(data), tile.W)
		}
	}
	return nil
}

// file reads a file of the log.
func (l *Log) file(ctx context.Context, name string, limit int64) ([]byte, error) {
	return store.Small(ctx, store.Place(strings.TrimSuffix(l.Place, "/")+"/"+name), limit)
}

// path returns the path of a tile by C2SP tlog-tiles. Package tlog writes paths with the
// height of tiles, and data in place of entries.
func path(t tlog.Tile) string {
	return strings.Replace(strings.Replace(t.Path(), "tile/8/", "tile/", 1), "tile/data/", "tile/entries/", 1)
}

// memory returns the file of the newest checkpoint that this host has seen.
func (l *Log) memory() string {
	return filepath.Join(l.Memory, url.PathEscape(l.Key.Name())+".checkpoint")
}

// remembered returns the newest checkpoint seen of this origin, or nil.
func (l *Log) remembered() (*checkpoint.Checkpoint, error) {
	data, err := regular.Read(l.memory(), maxCheckpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var seen checkpoint.Checkpoint
	if err == nil {
		_, err = seen.Unmarshal(data)
	}
	if err == nil && (seen.Size > maxEntries || len(seen.Hash) != tlog.HashSize) {
		err = errors.New("it is not a checkpoint of a log that builder reads")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the newest checkpoint seen of the log %s, %s: %w", l.Key.Name(), l.memory(), err)
	}
	return &seen, nil
}

// remember stores a checkpoint, unless another process has stored a newer one. The caller
// has checked that it continues the one stored before.
func (l *Log) remember(data []byte, size uint64) error {
	if seen, err := l.remembered(); err != nil || seen != nil && seen.Size >= size {
		return err
	}
	if err := os.MkdirAll(l.Memory, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(l.memory(), data); err != nil {
		return fmt.Errorf("remembering the log %s: %w", l.Key.Name(), err)
	}
	return nil
}

// A tree holds all entries of a log with the hashes over them.
type tree struct {
	data   [][]byte
	hashes []tlog.Hash // in the order of [tlog.StoredHashIndex]
	leaves []Leaf
}

func (t *tree) size() int64 { return int64(len(t.data)) }

// add appends an entry.
func (t *tree) add(data []byte) {
	more, err := tlog.StoredHashes(t.size(), data, t)
	if err != nil {
		panic(fmt.Sprintf("translog: hashing entry %d: %v", t.size(), err)) // cannot happen: all hashes are in memory
	}
	t.data, t.hashes = append(t.data, data), append(t.hashes, more...)
}

// root returns the hash over the first n entries.
func (t *tree) root(n int64) tlog.Hash {
	root, err := tlog.TreeHash(n, t)
	if err != nil {
		panic(fmt.Sprintf("translog: the hash of %d entries of %d: %v", n, t.size(), err)) // cannot happen either
	}
	return root
}

// ReadHashes implements [tlog.HashReader].
func (t *tree) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	all := make([]tlog.Hash, len(indexes))
	for i, at := range indexes {
		if at < 0 || at >= int64(len(t.hashes)) {
			return nil, fmt.Errorf("hash %d of %d", at, len(t.hashes))
		}
		all[i] = t.hashes[at]
	}
	return all, nil
}
