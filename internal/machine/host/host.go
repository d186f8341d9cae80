// Package host reads the state of a host: its files, mounts, kernel and programs, and
// its access to servers. It changes nothing and judges nothing; package doctor does.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"builder/internal/base/regular"
)

// A Host is a host to read. Tests use a recorded one.
type Host struct {
	FS   fs.FS  // root directory; links are read if it is an [fs.ReadLinkFS]
	Path string // PATH of the environment
	// Run runs a program and returns its stdout and stderr. A missing program is
	// [exec.ErrNotFound].
	Run func(ctx context.Context, name string, args ...string) (string, error)
	// Dial connects to an address and closes the connection.
	Dial func(ctx context.Context, network, address string) error
	// Disk describes the disk of a path.
	Disk func(path string) (Disk, error)
	// Writable returns nil if this user may write into a directory. It writes nothing.
	Writable func(path string) error
}

// A Disk is a mounted file system.
type Disk struct {
	Size, Free int64  // bytes; Free for this user
	Kind       string // ext4, or a number in hexadecimal
	NoExec     bool   // no program can run from there
}

// maxFile is the largest size in bytes of a file read as a whole. The largest such
// file, a kernel configuration, has 300 KB.
const maxFile = 2 << 20

// Open opens a regular file. Opening a pipe could block forever.
func (h Host) Open(name string) (fs.File, error) {
	info, err := h.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return h.FS.Open(local(name))
}

// Stat describes a file and follows symbolic links.
func (h Host) Stat(name string) (fs.FileInfo, error) { return fs.Stat(h.FS, local(name)) }

// local converts an absolute path to a path in an [fs.FS].
func local(name string) string {
	if name = strings.TrimPrefix(path.Clean(name), "/"); name != "" {
		return name
	}
	return "."
}

// Text returns the content of a regular file without surrounding white space.
func (h Host) Text(name string) (string, error) {
	f, err := h.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := regular.All(f, maxFile)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Says returns the text of a file, or "" if it is missing or unreadable.
func (h Host) Says(name string) string {
	text, _ := h.Text(name)
	return text
}

// Number returns the integer in a file. known is false if there is none.
func (h Host) Number(name string) (n int64, known bool) {
	n, err := strconv.ParseInt(h.Says(name), 10, 64)
	return n, err == nil
}

// Exists reports whether a file or directory exists.
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

// Names returns the names in a directory, which may be missing.
func (h Host) Names(dir string) []string {
	names, _ := h.List(dir)
	return names
}

// Link returns the target of a symbolic link, or "" if name is not one.
func (h Host) Link(name string) string {
	target, _ := fs.ReadLink(h.FS, local(name))
	return target
}

// Glob returns the matching absolute paths.
func (h Host) Glob(pattern string) []string {
	found, _ := fs.Glob(h.FS, local(pattern)) // callers pass valid patterns
	for i, name := range found {
		found[i] = "/" + name
	}
	return found
}

// ProgramDirs returns the directories to search for programs: those of PATH, and the
// usual ones, which the PATH of a user or service often lacks.
func ProgramDirs(path string) []string {
	return append(filepath.SplitList(path), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/go/bin")
}

// A Needed is a program that something needs from the host.
type Needed struct {
	Name    string
	Package string // Debian package
}

// Program returns the path of a program in dirs.
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

// Find returns the paths of needed programs by name, and the packages of those that the
// host lacks.
func (h Host) Find(needed []Needed) (found map[string]string, missing []string) {
	found = map[string]string{}
	for _, n := range needed {
		if path, ok := h.Program(n.Name, ProgramDirs(h.Path)); ok {
			found[n.Name] = path
		} else if !slices.Contains(missing, n.Package) {
			missing = append(missing, n.Package)
		}
	}
	return found, missing
}

// Kernel returns the release of the running kernel.
func (h Host) Kernel() string { return h.Says("/proc/sys/kernel/osrelease") }

// FirstLine returns the first nonempty line of a text.
func FirstLine(text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// memTotal matches the memory of the machine in units of 1024 bytes (proc(5)).
var memTotal = regexp.MustCompile(`(?m)^MemTotal:\s+(\d+) kB$`)

// Memory returns the bytes of memory available to processes: the memory of the machine,
// or a lower limit of the control group.
func (h Host) Memory() (int64, error) {
	m := memTotal.FindStringSubmatch(h.Says("/proc/meminfo"))
	if m == nil {
		return 0, errors.New("reading the memory of this host: /proc/meminfo has no MemTotal")
	}
	total, err := strconv.ParseInt(m[1], 10, 54)
	total <<= 10
	if limit, known := h.Number("/sys/fs/cgroup/memory.max"); known { // without a limit the file says max
		total = min(total, limit)
	}
	return total, err
}
