// Package host reads what a host is: its files, mounts, kernel and programs, and
// whether servers answer it. It changes nothing there and finds no fault; package
// doctor does.
package host

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"builder/internal/base/regular"
)

// A Host is where one looks. A recorded host answers as the real one does.
type Host struct {
	FS   fs.FS  // its root directory; symbolic links are read where it is an [fs.ReadLinkFS]
	Path string // of the environment: where programs are
	// Run runs a program and returns what it printed to both outputs. An absent one
	// is [exec.ErrNotFound].
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Ask asks an http or https address for its headers.
	Ask func(ctx context.Context, url string) (Answer, error)
	// Dial connects to an address and hangs up.
	Dial func(ctx context.Context, network, address string) error
	// Free returns the bytes that this user may still write on the disk of a path.
	Free func(path string) (int64, error)
	// Writable is nil if this user may write into a directory. Nothing is written.
	Writable func(path string) error
	Now      func() time.Time
}

// An Answer is what a server said.
type Answer struct {
	Status int
	Date   time.Time // zero where it did not say
}

// maxFile bounds a file of the host that is read as a whole. The longest that
// is, a kernel's configuration, has 300 KB.
const maxFile = 2 << 20

// Read returns the content of a regular file.
func (h Host) Read(name string) ([]byte, error) {
	f, err := h.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := regular.All(f, maxFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}

// Open opens a regular file: to open a pipe could wait forever.
func (h Host) Open(name string) (fs.File, error) {
	info, err := h.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	return h.FS.Open(local(name))
}

// Bytes opens a file for reading at any place.
func (h Host) Bytes(name string) (io.ReaderAt, func(), error) {
	f, err := h.Open(name)
	if err != nil {
		return nil, nil, err
	}
	done := func() { f.Close() }
	if r, can := f.(io.ReaderAt); can {
		return r, done, nil
	}
	done()
	return nil, nil, fmt.Errorf("%s cannot be read at any place", name)
}

// Stat describes what has that name, behind symbolic links.
func (h Host) Stat(name string) (fs.FileInfo, error) { return fs.Stat(h.FS, local(name)) }

// Walk visits a directory and all below it, as [fs.WalkDir] does.
func (h Host) Walk(dir string, visit fs.WalkDirFunc) error {
	return fs.WalkDir(h.FS, local(dir), visit)
}

// local turns an absolute path into one of an [fs.FS].
func local(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name != "" {
		return name
	}
	return "."
}

// Text returns the content of a file without white space around it.
func (h Host) Text(name string) (string, error) {
	data, err := h.Read(name)
	return strings.TrimSpace(string(data)), err
}

// Says is the content of a file that need not be there.
func (h Host) Says(name string) string {
	text, _ := h.Text(name)
	return text
}

// Number is the whole number in a file that need not be there.
func (h Host) Number(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(h.Says(name), 10, 64)
	return n, err == nil
}

// Exists reports whether there is something of that name.
func (h Host) Exists(name string) bool {
	_, err := h.Stat(name)
	return err == nil
}

// List returns the sorted names in a directory.
func (h Host) List(dir string) ([]string, error) {
	entries, err := fs.ReadDir(h.FS, local(dir))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Names are those in a directory that need not be there.
func (h Host) Names(dir string) []string {
	names, _ := h.List(dir)
	return names
}

// Link returns where a symbolic link points, "" where it is none.
func (h Host) Link(name string) string {
	target, _ := fs.ReadLink(h.FS, local(name))
	return target
}

// Glob returns the absolute paths that match.
func (h Host) Glob(pattern string) []string {
	found, _ := fs.Glob(h.FS, local(pattern)) // the patterns are well formed
	for i, name := range found {
		found[i] = "/" + name
	}
	return found
}

// ProgramDirs returns the directories that programs are looked for in: those of
// PATH, and what the PATH of a user, or of a service, often lacks.
func ProgramDirs(path string) []string {
	return append(filepath.SplitList(path), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/go/bin")
}

// Program returns where a program lies.
func (h Host) Program(name string, dirs []string) (string, bool) {
	for _, dir := range dirs {
		file := path.Join(dir, name)
		info, err := h.Stat(file)
		if err == nil && path.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

// FirstLine returns the first line of a text that is not empty.
func FirstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}
