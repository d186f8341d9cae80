package translog

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	checkpoint "github.com/transparency-dev/formats/log"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"builder/internal/base/atomicfile"
	"builder/internal/base/regular"
	"builder/internal/base/web"
	"builder/internal/input/store"
)

// Create writes an empty log to a directory without one.
func Create(dir string, key note.Signer) error {
	if _, err := os.Lstat(filepath.Join(dir, published)); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fmt.Errorf("%s holds a log", dir))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	data, err := (&tree{}).sign(key)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, published), data)
}

// Append adds entries to a log in a directory, unless it holds the same already. The
// witnesses cosign the new checkpoint before anyone can read it. It returns the number
// of new entries.
func (l *Log) Append(ctx context.Context, key note.Signer, leaves []Leaf) (added int, err error) {
	free, err := store.Lock(ctx, filepath.Join(l.Place, ".lock"), nil)
	if err != nil {
		return 0, err
	}
	defer free()
	l.Forget()
	head := published
	if _, err := os.Lstat(filepath.Join(l.Place, pending)); err == nil {
		head = pending
	}
	t, err := l.read(ctx, head)
	if err != nil {
		return 0, err
	}
	old := t.size()
	says := record{map[Leaf]bool{}, map[string]Leaf{}}
	for _, leaf := range t.leaves {
		says.add(leaf)
	}
	for _, leaf := range leaves {
		if !says.add(leaf) {
			continue
		}
		leaf.Logged = time.Now().UTC().Truncate(time.Second)
		data, err := json.Marshal(leaf)
		if err != nil {
			return 0, err
		}
		if len(data) > maxEntry || t.size() == maxEntries {
			return 0, l.fail("takes no entry of %d bytes as number %d", len(data), t.size())
		}
		t.add(data)
	}
	if t.size() == old && head == published {
		return 0, nil
	}
	if err := t.write(l.Place, old); err != nil {
		return 0, l.fail("cannot be written: %w", err)
	}
	return int(t.size() - old), l.publish(ctx, key, t, old)
}

// publish signs a tree, asks the witnesses, and shows the checkpoint to readers. A
// witness never forgets a checkpoint, so a checkpoint that got too few signatures stays
// pending, and the next one continues it.
func (l *Log) publish(ctx context.Context, key note.Signer, t *tree, old int64) error {
	data, err := t.sign(key)
	if err != nil {
		return err
	}
	waiting := filepath.Join(l.Place, pending)
	if err := atomicfile.Write(waiting, data); err != nil {
		return l.fail("cannot be written: %w", err)
	}
	if data, err = l.cosign(ctx, t, old, data); err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(l.Place, published), data); err != nil {
		return l.fail("cannot be written: %w", err)
	}
	return errors.Join(os.Remove(waiting), l.remember(data, uint64(t.size())))
}

// A record holds what a log already says: each statement, and the newest mark of each
// artifact.
type record struct {
	statements map[Leaf]bool
	marks      map[string]Leaf // by artifact
}

// add adds an entry, and reports whether the log did not say it before.
func (r record) add(l Leaf) bool {
	l.Logged, l.Artifact = time.Time{}, ""
	if l.Statement != "" {
		known := r.statements[l]
		r.statements[l] = true
		return !known
	}
	mark, marked := r.marks[l.Subject]
	r.marks[l.Subject] = l
	return mark != l && (marked || l.Kind == Yank)
}

// write writes the tiles that a tree of old entries lacks.
func (t *tree) write(dir string, old int64) error {
	for _, tile := range tlog.NewTiles(8, old, t.size()) {
		data, err := tlog.ReadTileData(tile, t)
		if err != nil {
			return err
		}
		files := map[string][]byte{path(tile): data}
		if tile.L == 0 {
			var entries []byte
			for _, e := range t.data[tile.N*width : tile.N*width+int64(tile.W)] {
				entries = append(binary.BigEndian.AppendUint16(entries, uint16(len(e))), e...)
			}
			tile.L = -1
			files[path(tile)] = entries
		}
		for name, data := range files {
			to := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			if err := atomicfile.Write(to, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// sign returns the signed checkpoint of the tree.
func (t *tree) sign(key note.Signer) ([]byte, error) {
	root := t.root(t.size())
	head := checkpoint.Checkpoint{Origin: key.Name(), Size: uint64(t.size()), Hash: root[:]}
	return note.Sign(&note.Note{Text: string(head.Marshal())}, key)
}

// Limits of asking a witness.
const (
	witnessTime = 30 * time.Second
	maxAnswer   = 64 << 10
)

// cosign adds the cosignatures of the witnesses to a checkpoint, as many as the policy
// requires or more.
func (l *Log) cosign(ctx context.Context, t *tree, old int64, data []byte) ([]byte, error) {
	endpoints := l.Witnesses.Endpoints()
	var errs []error
	for _, address := range slices.Sorted(maps.Keys(endpoints)) {
		lines, err := t.ask(ctx, address, old, data)
		if err == nil {
			_, err = note.Open(slices.Concat(data, lines), note.VerifierList(endpoints[address]))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s at %s: %w", endpoints[address].Name(), store.Place(address), web.WithoutAddress(err)))
			continue
		}
		data = append(data, lines...)
	}
	if !l.Witnesses.Satisfied(data) {
		return nil, l.fail("got too few signatures of witnesses, and shows its new entries to nobody: %w", errors.Join(errs...))
	}
	return data, nil
}

// ask asks a witness for its signature by C2SP tlog-witness. old is the size that the
// witness probably knows; if it knows another, it says so.
func (t *tree) ask(ctx context.Context, address string, old int64, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, witnessTime)
	defer cancel()
	for range 2 {
		body := fmt.Sprintf("old %d\n", old)
		if old > 0 {
			proof, err := tlog.ProveTree(t.size(), old, t)
			if err != nil {
				return nil, err
			}
			for _, h := range proof {
				body += base64.StdEncoding.EncodeToString(h[:]) + "\n"
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body+"\n"+string(data)))
		if err != nil {
			return nil, err
		}
		resp, err := web.Client(web.Stay).Do(req)
		if err != nil {
			return nil, err
		}
		answer, err := regular.All(io.LimitReader(resp.Body, maxAnswer+1), maxAnswer)
		resp.Body.Close()
		knows, wrong := strconv.ParseInt(strings.TrimSpace(string(answer)), 10, 64)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusOK && bytes.HasPrefix(answer, []byte("— ")):
			return answer, nil
		case resp.StatusCode == http.StatusConflict && wrong == nil && knows >= 0 && knows <= t.size() && knows != old:
			old = knows
		default:
			return nil, fmt.Errorf("it answered %s", resp.Status)
		}
	}
	return nil, errors.New("it named two sizes of the log")
}
