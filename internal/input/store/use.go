package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// trusted is how long a check of a file counts that nobody has written to since:
// disks rot without a trace in the directory.
const trusted = 7 * 24 * time.Hour

// Use returns where b lies, for somebody who is going to read it: the content is
// known to be right, and [Store.Collect] learns that it was wanted. A damaged
// file is removed, so that it is fetched again, and is an error; where there is
// none, or one of another size, the error is [fs.ErrNotExist].
func (s *Store) Use(b Blob) (string, error) {
	path, ok := s.Path(b)
	if !ok {
		return "", diag.Errorf(diag.Fetch, "using %s (sha256 %s): %w", b.Name, b.SHA256, fs.ErrNotExist)
	}
	if !s.checked(b.SHA256) {
		if err := s.Verify(b); err != nil {
			return "", err
		}
	}
	now := time.Now()
	_ = os.Chtimes(s.record(b.SHA256), now, now) // a store that cannot be written is not collected either
	return path, nil
}

// record is where it is noted when a blob was checked. The file's own time is
// that of the last use: a time of the blob itself would be seen by the engine,
// which then takes the file for another.
func (s *Store) record(digest string) string { return filepath.Join(s.dir, records, digest) }

// note remembers that the file of a digest was found right just now; that is no
// use of it. It is no fault if noting fails: the file is read once more.
func (s *Store) note(digest string) {
	info, err := os.Lstat(s.place(digest))
	if err != nil {
		return
	}
	wanted := s.lastUse(digest, info)
	_ = os.WriteFile(s.record(digest), fmt.Appendf(nil, "%s %d\n", markOf(info), time.Now().Unix()), 0o644)
	_ = os.Chtimes(s.record(digest), wanted, wanted)
}

// checked reports whether a blob was read lately, and is the same file still.
func (s *Store) checked(digest string) bool {
	data, err := regular.Read(s.record(digest), 1<<10)
	if err != nil {
		return false
	}
	info, err := os.Lstat(s.place(digest))
	if err != nil {
		return false
	}
	var was int64
	_, err = fmt.Sscanf(string(data), markOf(info)+" %d\n", &was)
	age := time.Since(time.Unix(was, 0))
	return err == nil && age >= 0 && age < trusted
}

// markOf tells a file from others, and from itself after somebody wrote to it.
func markOf(info fs.FileInfo) string {
	return fmt.Sprintf("%d %d %d", inode(info), info.Size(), info.ModTime().UnixNano())
}

// inode is 0 where the file system has none.
func inode(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// drop removes a blob with what is noted of it.
func (s *Store) drop(digest string) error {
	_ = os.Remove(s.record(digest))
	return os.Remove(s.place(digest))
}
