package lock_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"builder/internal/base/diag"
	"builder/internal/plan/lock"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// entry returns the entry of the second cell of the tiny recipe.
func entry(t *testing.T) lock.Entry {
	t.Helper()
	entries := must.Get(lock.Assemble(drafts(t), tinyLock(), "0123456789abcdef"))(t)
	return entries[1]
}

func TestWriteEntry(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out", "cell")
	_, err := lock.ReadEntry(dir)
	check.That(t, errors.Is(err, fs.ErrNotExist), "where there is none: %v", err)
	whole := *full()
	whole.Schema = lock.EntrySchema
	for i, e := range []lock.Entry{entry(t), entry(t), whole} {
		was, _ := os.Stat(filepath.Join(dir, lock.EntryFile))
		must.Succeed(t, lock.WriteEntry(dir, e))
		if is, err := os.Stat(filepath.Join(dir, lock.EntryFile)); err != nil || os.SameFile(was, is) != (i == 1) {
			t.Errorf("entry %d: what is there already was written again, or another was not: %v", i, err)
		}
		got, err := lock.ReadEntry(dir)
		diff := cmp.Diff(e, got)
		check.That(t, err == nil && diff == "", "%v (-want +got):\n%s", err, diff)
		data, err := os.ReadFile(filepath.Join(dir, lock.EntryFile))
		sum := sha256.Sum256(data)
		check.That(t, err == nil && hex.EncodeToString(sum[:]) == e.Key(), "the file is not what the key is of: %v", err)
	}
	left, err := os.ReadDir(dir)
	check.That(t, err == nil && len(left) == 1, "left behind: %v, %v", left, err)
}

func TestReadEntryRefuses(t *testing.T) {
	good := string(entry(t).Canonical())
	for want, text := range map[string]string{
		"unexpected EOF":                            good[:len(good)-1],
		"source/size has the wrong type":            strings.Replace(good, `"size":7`, `"size":"7"`, 1),
		"the schema is 1, and this builder reads 2": strings.Replace(good, `"schema":2`, `"schema":1`, 1),
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, lock.EntryFile)
		must.Succeed(t, os.WriteFile(path, []byte(text), 0o644))
		_, err := lock.ReadEntry(dir)
		check.That(t, err != nil && err.Error() == path+": reading the entry of a run: "+want && diag.CodeOf(err) == diag.Drift,
			"class %v: %v, want %s", diag.CodeOf(err), err, want)
		_, of := lock.ReadEntryFile(path) // a file of the user is not to be removed
		if own, users := diag.All(err)[0].Hint, diag.All(of)[0].Hint; !strings.Contains(own, "remove the file") || users != "name an entry.json that `builder run` wrote" {
			t.Errorf("hints %q and %q", own, users)
		}
	}
}
