package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
)

// A Host is where checks look. A recorded host answers as the real one does.
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

// read returns the content of a regular file.
func (h Host) read(name string) ([]byte, error) {
	f, err := h.open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s: longer than %d bytes", name, maxFile)
	}
	return data, err
}

// open opens a regular file: to open a pipe could wait forever.
func (h Host) open(name string) (fs.File, error) {
	info, err := fs.Stat(h.FS, local(name))
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	return h.FS.Open(local(name))
}

// local turns an absolute path into one of an [fs.FS].
func local(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name != "" {
		return name
	}
	return "."
}

// text returns the content of a file without white space around it.
func (h Host) text(name string) (string, error) {
	data, err := h.read(name)
	return strings.TrimSpace(string(data)), err
}

// says is the content of a file that need not be there.
func (h Host) says(name string) string {
	text, _ := h.text(name)
	return text
}

// number is the whole number in a file that need not be there.
func (h Host) number(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(h.says(name), 10, 64)
	return n, err == nil
}

func (h Host) exists(name string) bool {
	_, err := fs.Stat(h.FS, local(name))
	return err == nil
}

// list returns the sorted names in a directory.
func (h Host) list(dir string) ([]string, error) {
	entries, err := fs.ReadDir(h.FS, local(dir))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// names are those in a directory that need not be there.
func (h Host) names(dir string) []string {
	names, _ := h.list(dir)
	return names
}

// link returns where a symbolic link points, "" where it is none.
func (h Host) link(name string) string {
	target, _ := fs.ReadLink(h.FS, local(name))
	return target
}

// glob returns the absolute paths that match.
func (h Host) glob(pattern string) []string {
	found, _ := fs.Glob(h.FS, local(pattern)) // the patterns are well formed
	for i, name := range found {
		found[i] = "/" + name
	}
	return found
}

// program returns where a program lies.
func (h Host) program(name string, dirs []string) (string, bool) {
	for _, dir := range dirs {
		file := path.Join(dir, name)
		info, err := fs.Stat(h.FS, local(file))
		if err == nil && path.IsAbs(file) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return file, true
		}
	}
	return "", false
}

// field returns the value behind a name and a colon, as in /proc/self/status.
func field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// because says why a file could not be read, without naming it twice.
func because(err error) string {
	if e, is := errors.AsType[*fs.PathError](err); is {
		return fmt.Sprintf("/%s: %v", strings.TrimPrefix(e.Path, "/"), e.Err)
	}
	return err.Error()
}

// firstLine returns the first line of a text that is not empty.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// size writes bytes for people, in powers of ten as `memory` of a recipe.
func size(n int64) string {
	switch {
	case n < 1e6:
		return fmt.Sprintf("%d KB", n/1e3)
	case n < 1e9:
		return fmt.Sprintf("%d MB", n/1e6)
	case n < 1e11:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	}
	return fmt.Sprintf("%d GB", n/1e9)
}

// count says how many there are: 1 port, 2 ports.
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
