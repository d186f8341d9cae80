package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"builder/internal/base/diag"
	"builder/test/kit/check"
	"builder/test/kit/must"
)

// spoil replaces the content "good" of a file with other content of the same size.
func spoil(t *testing.T, s *Store, b Blob) {
	t.Helper()
	path := slotOf(s.dir, b.SHA256).blob
	must.Succeed(t, os.Chmod(path, 0o644), os.WriteFile(path, []byte("evil"), 0o644))
}

func TestUseNoticesWhatWasWrittenTo(t *testing.T) {
	s := fresh(t)
	b := put(t, s, "a.whl", "good")
	if _, err := s.Use(b); err != nil {
		t.Fatal(err)
	}
	spoil(t, s, b) // of the same size
	_, err := s.Use(b)
	check.That(t, diag.CodeOf(err) == diag.Fetch && !errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), b.SHA256) && strings.Contains(err.Error(), "a.whl"),
		"got %v", err)
	_, err = s.Use(b)
	check.That(t, errors.Is(err, fs.ErrNotExist), "the damaged file is still there: %v", err)
}

// A check expires, because a damaged disk leaves no other trace.
func TestUseReadsAgainAfterAWhile(t *testing.T) {
	s := fresh(t)
	b := put(t, s, "a.whl", "good")
	path := slotOf(s.dir, b.SHA256).blob
	before, err := os.Stat(path)
	must.Succeed(t, err)
	spoil(t, s, b)
	must.Succeed(t, os.Chtimes(path, before.ModTime(), before.ModTime()))
	_, err = s.Use(b)
	must.Hold(t, err == nil, "what was checked just now was read: %v", err)
	old := fmt.Sprintf("%s %d\n", markOf(before), time.Now().Add(-trusted-time.Minute).Unix())
	write(t, slotOf(s.dir, b.SHA256).record, []byte(old))
	_, err = s.Use(b)
	check.That(t, err != nil, "it was not read after a week")
}

func TestUseWithoutARecord(t *testing.T) {
	now := fmt.Sprintf(" %d\n", time.Now().Unix())
	for name, record := range map[string]string{
		"none": "", "damaged": "1 2", "of the future": "BOOT FILE 99999999999\n",
		"of another host": "0f8fad5b-d9cb-469f-a165-70867728950e FILE" + now, "without a host": "FILE" + now,
	} {
		s := fresh(t)
		b := put(t, s, "a.whl", "good")
		spoil(t, s, b)
		info, err := os.Stat(slotOf(s.dir, b.SHA256).blob)
		must.Succeed(t, err)
		boot, file, _ := strings.Cut(markOf(info), " ")
		write(t, slotOf(s.dir, b.SHA256).record, []byte(strings.NewReplacer("BOOT", boot, "FILE", file).Replace(record)))
		_, err = s.Use(b)
		check.That(t, err != nil, "%s: nobody read the file", name)
	}
}

// A link in place of a record does not let a check write to another file.
func TestUseWritesThroughNoLink(t *testing.T) {
	s := fresh(t)
	b := put(t, s, "a.whl", "good")
	other := write(t, filepath.Join(t.TempDir(), "other"), []byte("of the user"))
	must.Succeed(t, os.Remove(slotOf(s.dir, b.SHA256).record), os.Symlink(other, slotOf(s.dir, b.SHA256).record))
	must.Get(s.Use(b))(t)
	data, err := os.ReadFile(other)
	check.That(t, err == nil && string(data) == "of the user", "%q, %v", data, err)
}

func TestReceive(t *testing.T) {
	s := fresh(t)
	b := Blob{"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
	for content, want := range map[string]string{"ab": "2 bytes instead of the expected 3", "abd": "wrong content", "abcd": "longer"} {
		added, err := s.Receive(b, strings.NewReader(content))
		check.That(t, !added && err != nil && strings.Contains(err.Error(), want), "%q: %v, %v", content, added, err)
	}
	_, ok := s.Path(b)
	must.Hold(t, !ok, "something was kept")
	added, err := s.Receive(b, strings.NewReader("abc"))
	must.Hold(t, added && err == nil, "%v, %v", added, err)
	added, err = s.Receive(b, strings.NewReader("abc"))
	check.That(t, !added && err == nil, "again: %v, %v", added, err)
	_, err = s.Receive(b, strings.NewReader("abd"))
	check.That(t, err != nil, "what is here already hides that other bytes came")
	left := names(t, filepath.Join(s.dir, temps))
	check.That(t, len(left) == 0, "left behind: %v", left)
}
