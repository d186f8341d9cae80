// Package wheel reads, checks and writes Python wheels: the file name, METADATA
// and WHEEL, RECORD, and the ZIP itself.
//
// A wheel comes from a build or from somewhere else, and neither is trusted.
// Nothing is unpacked by its own name: a member is read into memory up to a
// limit or into a temporary file that has no name. Directory, members and
// decompression are bounded.
package wheel

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is read. The largest wheels of the field have 20,000 members
// and 5 GiB.
const (
	maxDirectory = 32 << 20 // bytes of the ZIP's directory
	maxMembers   = 200_000
	maxTotal     = 64 << 30 // bytes, unpacked
	freeTotal    = 1 << 30  // up to here any ratio is taken
	maxRatio     = 200      // unpacked : packed, of the whole wheel
	maxHeader    = 16 << 20 // METADATA, WHEEL
	maxRecord    = 64 << 20
)

// Wheel is an open wheel. Metadata and WheelInfo are empty where the wheel has
// none that can be read; [Wheel.Check] then says so.
type Wheel struct {
	Name      Name
	Files     []File // without directories, in the order of the ZIP
	DistInfo  string // name of the .dist-info directory, "" where that is not clear
	Metadata  Header
	WheelInfo Header

	zip      *zip.Reader
	members  map[string][]*zip.File // more than one is a fault
	infoDirs []string               // every .dist-info directory
	faults   []string               // met while opening
	close    func() error
}

// File is a member of the wheel.
type File struct {
	Name string
	Size int64
	Mode fs.FileMode
}

// Open opens the wheel at path. It fails for what is no wheel at all: a name
// that says nothing, a truncated ZIP, sizes beyond reason. All else is left to
// [Wheel.Check].
func Open(path string) (*Wheel, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening wheel: %w", err)
	}
	w, err := openFile(f, filepath.Base(path))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening wheel %q: %w", path, err), f.Close())
	}
	w.close = f.Close
	return w, nil
}

func openFile(f *os.File, base string) (*Wheel, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	return read(base, f, info.Size())
}

func read(base string, r io.ReaderAt, size int64) (*Wheel, error) {
	name, err := ParseName(base)
	if err != nil {
		return nil, err
	}
	archive, err := openZIP(r, size)
	if err != nil {
		return nil, err
	}
	w := &Wheel{Name: name, zip: archive, members: map[string][]*zip.File{}, close: func() error { return nil }}
	for _, f := range archive.File {
		w.members[f.Name] = append(w.members[f.Name], f)
		if !strings.HasSuffix(f.Name, "/") {
			w.Files = append(w.Files, File{f.Name, int64(f.UncompressedSize64), f.Mode()})
		}
	}
	w.findDistInfo()
	w.Metadata = w.header("METADATA")
	w.WheelInfo = w.header("WHEEL")
	return w, nil
}

// openZIP reads the directory of a ZIP and refuses what cannot be true.
func openZIP(r io.ReaderAt, size int64) (*zip.Reader, error) {
	bounded := &boundedReader{r: r, left: maxDirectory}
	archive, err := zip.NewReader(bounded, size)
	switch {
	case errors.Is(err, zip.ErrInsecurePath): // Check names the member
	case errors.Is(err, zip.ErrFormat):
		return nil, fmt.Errorf("the ZIP has no directory at its end: the file of %d bytes is truncated, or no wheel", size)
	case err != nil:
		return nil, fmt.Errorf("reading directory of the ZIP: %w", err)
	}
	bounded.open = true
	return archive, plausible(archive.File, uint64(size))
}

// plausible refuses directories that promise more than the file can hold.
func plausible(files []*zip.File, size uint64) error {
	if len(files) > maxMembers {
		return fmt.Errorf("the ZIP has %d members, at most %d are read", len(files), maxMembers)
	}
	var packed, unpacked uint64
	for _, f := range files {
		if f.CompressedSize64 > size || f.UncompressedSize64 > maxTotal {
			return fmt.Errorf("the ZIP's directory gives %q %d bytes, unpacked %d", f.Name, f.CompressedSize64, f.UncompressedSize64)
		}
		packed, unpacked = packed+f.CompressedSize64, unpacked+f.UncompressedSize64
	}
	switch {
	case packed > size:
		return fmt.Errorf("the ZIP's members overlap: %d bytes in a file of %d", packed, size)
	case unpacked > maxTotal:
		return fmt.Errorf("the ZIP unpacks to %d bytes, at most %d are read", unpacked, int64(maxTotal))
	case unpacked > freeTotal && unpacked/maxRatio > packed:
		return fmt.Errorf("the ZIP unpacks from %d to %d bytes, as no real wheel does", packed, unpacked)
	}
	return nil
}

// boundedReader stops the reading of a directory, which archive/zip holds in
// memory whole and whose length the file itself states.
type boundedReader struct {
	r    io.ReaderAt
	left int64
	open bool // the directory has been read
}

func (b *boundedReader) ReadAt(p []byte, off int64) (int, error) {
	if !b.open {
		if b.left -= int64(len(p)); b.left < 0 {
			return 0, fmt.Errorf("it is longer than %d bytes", maxDirectory)
		}
	}
	return b.r.ReadAt(p, off)
}

// findDistInfo takes the directory of the name that the file name promises, and
// where there is none the only one.
func (w *Wheel) findDistInfo() {
	for _, f := range w.Files {
		if top, _, ok := strings.Cut(f.Name, "/"); ok && strings.HasSuffix(top, ".dist-info") {
			w.infoDirs = append(w.infoDirs, top)
		}
	}
	w.infoDirs = sortedSet(w.infoDirs)
	promised := w.Name.Distribution + "-" + w.Name.Version + ".dist-info"
	switch {
	case slices.Contains(w.infoDirs, promised):
		w.DistInfo = promised
	case len(w.infoDirs) == 1:
		w.DistInfo = w.infoDirs[0]
	}
}

func (w *Wheel) header(file string) Header {
	if w.DistInfo == "" {
		return Header{}
	}
	name := w.DistInfo + "/" + file
	data, err := w.ReadFile(name, maxHeader)
	if err != nil {
		w.faults = append(w.faults, err.Error())
		return Header{}
	}
	h, err := ParseHeader(data)
	if err == nil && len(h) == 0 {
		err = errors.New("it has no fields")
	}
	if err != nil {
		w.faults = append(w.faults, fmt.Sprintf("%s: %v", name, err))
		return Header{}
	}
	return h
}

// Close closes the file. Members that were opened stay open.
func (w *Wheel) Close() error { return w.close() }

// ReadFile returns the bytes of a member that has at most limit of them.
func (w *Wheel) ReadFile(name string, limit int64) ([]byte, error) {
	f, err := w.member(name)
	if err != nil {
		return nil, err
	}
	if f.UncompressedSize64 > uint64(max(limit, 0)) {
		return nil, fmt.Errorf("reading %q: it has %d bytes, at most %d are read", name, f.UncompressedSize64, limit)
	}
	var b bytes.Buffer
	if err := copyMember(&b, f); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Member is an open member: a file without a name that goes when it is closed.
type Member interface {
	io.ReaderAt
	io.Closer
}

// Open unpacks a member into a temporary file, for readers that need to seek.
func (w *Wheel) Open(name string) (Member, error) {
	f, err := w.member(name)
	if err != nil {
		return nil, err
	}
	tmp, err := os.CreateTemp("", "wheel-member-*")
	if err != nil {
		return nil, fmt.Errorf("unpacking %q: %w", name, err)
	}
	// Without its name nothing is left behind, however the process ends.
	if err := errors.Join(os.Remove(tmp.Name()), copyMember(tmp, f)); err != nil {
		return nil, errors.Join(err, tmp.Close())
	}
	return tmp, nil
}

// ExtractAs unpacks a member into a new file, whose path the caller chooses.
func (w *Wheel) ExtractAs(name, to string, mode fs.FileMode) error {
	f, err := w.member(name)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("unpacking %q: %w", name, err)
	}
	return errors.Join(copyMember(file, f), file.Close())
}

// member returns the one member of a name. Where there are two, readers of ZIPs
// differ in which they take, so neither is right.
func (w *Wheel) member(name string) (*zip.File, error) {
	switch found := w.members[name]; {
	case len(found) == 0:
		return nil, fmt.Errorf("reading %q: it is not in the wheel", name)
	case len(found) > 1:
		return nil, fmt.Errorf("reading %q: it is in the wheel %d times", name, len(found))
	case !found[0].Mode().IsRegular():
		return nil, fmt.Errorf("reading %q: it is no regular file", name)
	default:
		return found[0], nil
	}
}

// copyMember unpacks a member. archive/zip fails when it is longer or shorter
// than the directory says, or its checksum differs.
func copyMember(dst io.Writer, f *zip.File) error {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("reading %q: %w", f.Name, err)
	}
	defer r.Close()
	if _, err := io.Copy(dst, r); err != nil {
		return fmt.Errorf("reading %q: %w", f.Name, err)
	}
	return nil
}
