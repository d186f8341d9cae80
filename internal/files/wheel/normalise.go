package wheel

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// Options say how [Normalise] changes a wheel.
type Options struct {
	// Epoch is the time of every member, SOURCE_DATE_EPOCH most often. A ZIP
	// knows the years 1980 to 2106.
	Epoch time.Time
	// Replace gives members new content; names that the wheel lacks are added.
	Replace map[string][]byte
	// Remove, where it is set, leaves members out.
	Remove func(name string) bool
}

// Normalise writes the wheel so that the same content gives the same bytes,
// whatever the order, times, modes and compression of the original: sorted
// names with .dist-info last and a new RECORD at the very end, one time, and
// modes 0644 or 0755. Directory entries and signatures of the old RECORD are
// left out. The bytes also depend on the deflate of the Go release that built the tool.
func Normalise(dst io.Writer, w *Wheel, opts Options) error {
	if w.DistInfo == "" || len(w.infoDirs) != 1 {
		return fmt.Errorf("normalising %s: it has %d .dist-info directories, want 1", w.Name, len(w.infoDirs))
	}
	if err := w.normalise(dst, opts); err != nil {
		return fmt.Errorf("normalising %s: %w", w.Name, err)
	}
	return nil
}

func (w *Wheel) normalise(dst io.Writer, opts Options) error {
	names, err := w.selection(opts)
	if err != nil {
		return err
	}
	out := writer{zip.NewWriter(dst), clamp(opts.Epoch)}
	var lines []recordLine
	for _, name := range names {
		line, err := w.writeMember(out, name, opts.Replace)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	self := w.DistInfo + "/RECORD"
	if err := out.write(self, 0, bytes.NewReader(formatRecord(lines, self))); err != nil {
		return err
	}
	return out.zip.Close()
}

// selection returns the names to write, in order, without RECORD.
func (w *Wheel) selection(opts Options) ([]string, error) {
	var faults []string
	names := map[string]bool{}
	for _, f := range w.Files {
		names[f.Name] = opts.Remove == nil || !opts.Remove(f.Name)
	}
	for name := range opts.Replace {
		if fault := pathFault(name); fault != "" || strings.HasSuffix(name, "/") {
			faults = append(faults, fmt.Sprintf("the new file %q %s", name, cmp.Or(fault, "is a directory")))
		}
		if unhashed(name, w.DistInfo) {
			faults = append(faults, fmt.Sprintf("the new file %q would be overwritten: RECORD is made from what is written", name))
		}
		names[name] = true
	}
	if len(faults) > 0 {
		slices.Sort(faults)
		return nil, errors.New(strings.Join(faults, "; "))
	}
	maps.DeleteFunc(names, func(name string, keep bool) bool { return !keep || unhashed(name, w.DistInfo) })
	return slices.SortedFunc(maps.Keys(names), w.compareNames), nil
}

// compareNames orders .dist-info behind all else, as PEP 427 recommends: it can
// then be read and amended without rewriting the rest.
func (w *Wheel) compareNames(a, b string) int {
	rank := func(name string) int {
		if strings.HasPrefix(name, w.DistInfo+"/") {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

func (w *Wheel) writeMember(out writer, name string, replace map[string][]byte) (recordLine, error) {
	var mode fs.FileMode
	if found := w.members[name]; found != nil {
		mode = found.Mode()
	}
	if data, ok := replace[name]; ok {
		sum := sha256.Sum256(data)
		return lineOf(name, sum[:], int64(len(data))), out.write(name, mode, bytes.NewReader(data))
	}
	f, err := w.member(name)
	if err != nil {
		return recordLine{}, err
	}
	member, err := out.create(name, mode)
	if err != nil {
		return recordLine{}, err
	}
	return measure(member, f)
}

// writer writes members that differ in name, content and the executable bit,
// and in nothing else.
type writer struct {
	zip   *zip.Writer
	epoch time.Time
}

func (w writer) create(name string, mode fs.FileMode) (io.Writer, error) {
	h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.epoch}
	if mode&0o111 != 0 {
		h.SetMode(0o755)
	} else {
		h.SetMode(0o644)
	}
	return w.zip.CreateHeader(h)
}

func (w writer) write(name string, mode fs.FileMode, content io.Reader) error {
	member, err := w.create(name, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(member, content)
	return err
}

var (
	firstTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
	lastTime  = time.Unix(math.MaxUint32-1, 0).UTC() // of the extended field; an even second, as the old one has them
)

func clamp(t time.Time) time.Time {
	switch {
	case t.Before(firstTime):
		return firstTime
	case t.After(lastTime):
		return lastTime
	}
	return t.UTC()
}
