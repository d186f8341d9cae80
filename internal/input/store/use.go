package store

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// trusted is how long a check of an unchanged file is valid. It is bounded, because a
// disk may damage data without a change in the directory.
const trusted = 7 * 24 * time.Hour

// Use returns the path of b for reading. It checks the content, if not checked
// recently, and records the use for [Store.Collect]. It removes a damaged file, so that
// it is fetched again, and returns an error. The error for a missing file or one of
// another size is [fs.ErrNotExist].
func (s *Store) Use(b Blob) (string, error) {
	path, ok := s.Path(b)
	if !ok {
		return "", diag.Errorf(diag.Fetch, "using %s (sha256 %s): %w", b.Name, b.SHA256, fs.ErrNotExist)
	}
	at := slotOf(s.dir, b.SHA256)
	if !at.checked() {
		if err := s.Verify(b); err != nil {
			return "", err
		}
	}
	now := time.Now()
	_ = os.Chtimes(at.record, now, now) // fails in a read-only store, which is never collected
	return path, nil
}

// A slot holds the paths of a blob and of its record. The content of the record is the
// last check, and its modification time is the last use. The blob's own times stay
// unchanged, because the engine takes a file with new times for another file.
type slot struct{ blob, record string }

// slotOf returns the slot of a digest in the store at dir. The caller has checked the
// digest's format.
func slotOf(dir, digest string) slot {
	return slot{filepath.Join(dir, contents, digest[:2], digest), filepath.Join(dir, records, digest)}
}

// note records that the blob was just verified, without counting it as a use. It
// ignores errors: the file is then only read once more.
func (s slot) note() {
	info, err := os.Lstat(s.blob)
	if err != nil {
		return
	}
	wanted := s.lastUse(info)
	if f, err := os.OpenFile(s.record, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o644); err == nil {
		_, _ = fmt.Fprintf(f, "%s %d\n", markOf(info), time.Now().Unix())
		_ = f.Close()
	}
	_ = os.Chtimes(s.record, wanted, wanted)
}

// lastUse returns the last use of the blob with this state, or its arrival if it was not
// used since.
func (s slot) lastUse(info fs.FileInfo) time.Time {
	if noted, err := os.Stat(s.record); err == nil {
		return noted.ModTime()
	}
	return info.ModTime()
}

// checked reports whether the blob was verified recently and has not changed since.
func (s slot) checked() bool {
	data, err := regular.Read(s.record, 1<<10)
	if err != nil {
		return false
	}
	info, err := os.Lstat(s.blob)
	if err != nil {
		return false
	}
	var was int64
	_, err = fmt.Sscanf(string(data), markOf(info)+" %d\n", &was)
	age := time.Since(time.Unix(was, 0))
	return err == nil && age >= 0 && age < trusted
}

// markOf identifies a file and its state: a write changes the mark. So does another
// boot: a record that came with a store from elsewhere, such as a cache of CI, is no
// check of a file here.
func markOf(info fs.FileInfo) string {
	var inode uint64 // 0 if the file system has none
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%s %d %d %d", boot(), inode, info.Size(), info.ModTime().UnixNano())
}

// boot returns the kernel's random id of this boot, or "-" if the system has none.
var boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return cmp.Or(strings.TrimSpace(string(id)), "-")
})

// drop removes the blob and its record.
func (s slot) drop() error {
	_ = os.Remove(s.record)
	return os.Remove(s.blob)
}
