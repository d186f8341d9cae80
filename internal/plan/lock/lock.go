// Package lock turns a cell into an [Entry]: all inputs of its build, by digest. The
// lock file is meant to be checked in and reviewed. It has one pin per line, sorted:
// names, versions, pool paths, sizes and digests. It has no time, host or path of the
// machine that wrote it, and changes only if a pin changes.
//
// [Resolver] is the only part that resolves names. All other code here computes values
// from values. Package fetch downloads the files of a build, and package pipelines
// builds them.
package lock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/atomicfile"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
	"builder/internal/plan/image"
	"builder/internal/plan/recipe"
)

// Schema is the version of the format of lock files.
const Schema = 1

// A File is the lock of one recipe: its resolved names.
type File struct {
	Schema  int         `json:"schema"`
	Recipe  string      `json:"recipe"`
	Sources []SourcePin `json:"sources"`
	Images  []ImagePin  `json:"images"`
	Python  []PythonPin `json:"python"`
}

// A SourcePin is the archive of a source tree. For a source distribution it is the file
// in the index. For a commit it is the archive written by [git.Make], whose bytes are
// determined by the commit.
type SourcePin struct {
	pypi.File
	Repository string `json:"repository,omitempty"` // from the recipe: a lock holds no address
	Tag        string `json:"tag,omitempty"`
	Commit     string `json:"commit,omitempty"`
	Under      string `json:"under,omitempty"`  // folder of the tree in the archive, or "" for the whole tree
	Root       bool   `json:"root,omitempty"`   // Under is the root of the archive
	Epoch      int64  `json:"epoch,omitempty"`  // time of the commit, in seconds
	Path       string `json:"path,omitempty"`   // in the pool of a Debian archive
	Python     string `json:"python,omitempty"` // of a wheel: its CPython version
}

// IsWheel reports whether the source is a released wheel.
func (p SourcePin) IsWheel() bool { return p.Python != "" }

// Kind returns the kind of the source.
func (p SourcePin) Kind() recipe.SourceKind {
	switch {
	case p.Path != "":
		return recipe.Archive
	case p.Commit != "":
		return recipe.Git
	case p.IsWheel():
		return recipe.Wheel
	}
	return recipe.Sdist
}

// asks returns the need for which a pin was made, in words. A lock has one pin for
// each.
func (p SourcePin) asks() string { return asked(p.Project, p.Version, p.Python) }

func asked(project, version, python string) string {
	if python == "" {
		return project + " " + version
	}
	return project + " " + version + " for Python " + python
}

// answers reports whether the pin satisfies the need.
func (p SourcePin) answers(s SourceNeed) bool {
	return p.Project == s.Project && p.Version == s.Version &&
		p.Tag == s.Tag && p.Under == s.Under && p.Root == s.Root && p.Path == s.Path && p.Python == s.Python &&
		(s.SHA256 == "" || p.SHA256 == s.SHA256) && (s.Commit == "" || p.Commit == s.Commit)
}

// An ImagePin is a base image by digest. It also holds the request, so that a changed
// request is detected.
type ImagePin struct {
	Name     string        `json:"name"`
	Registry string        `json:"registry,omitempty"`
	Digest   string        `json:"digest,omitempty"`
	Date     string        `json:"date,omitempty"` // of the Debian index, in the format of snapshot archives: 20261121T000000Z
	Debian   *image.Debian `json:"debian,omitempty"`
	Packages []deb.Package `json:"packages,omitempty"`
}

// answers reports whether the pin was made for the current request of the image.
func (p ImagePin) answers(img image.Image) bool {
	return p.Name == img.Name && p.Registry == img.Registry && encoded(p.Debian) == encoded(img.Debian)
}

// Reference returns the reference of a registry image with its digest.
func (p ImagePin) Reference() string { return p.Registry + "@" + p.Digest }

// A PythonPin is the set of files to which requirements on one Python were resolved. As a
// need of a draft it has no files.
type PythonPin struct {
	Python       string      `json:"python"`
	Requirements []string    `json:"requirements"`
	Files        []pypi.File `json:"files"`
}

// Missing lists the needs of drafts for which the file has no pin.
type Missing struct {
	Sources []SourceNeed
	Images  []image.Image
	Python  []PythonPin
}

// String returns the need in words.
func (p PythonPin) String() string {
	if len(p.Requirements) == 0 {
		return fmt.Sprintf("Python %s without packages", p.Python)
	}
	return fmt.Sprintf("Python %s with %s", p.Python, strings.Join(p.Requirements, " "))
}

// None reports whether nothing is missing.
func (m Missing) None() bool { return len(m.Sources)+len(m.Images)+len(m.Python) == 0 }

// Unstated returns a message for each need that only one server can resolve: the
// registry of an image named by a tag, the repository of a git source, or a named Python
// index. No file and no public index states their current digests.
func (m Missing) Unstated() (whys []string) {
	for _, s := range m.Sources {
		if s.Kind == recipe.Git {
			whys = append(whys, fmt.Sprintf("source %s: only its repository has the digest of the archive", asked(s.Project, s.Version, s.Python)))
		}
	}
	for _, img := range m.Images {
		if img.Unstated() {
			whys = append(whys, fmt.Sprintf("image %s: only its registry has the digest of %s", img.Name, img.Registry))
		}
	}
	for _, p := range m.Python {
		if index := p.index(); index != "" {
			whys = append(whys, fmt.Sprintf("Python packages: only the index %s has %s", index, p))
		}
	}
	return whys
}

// index returns the named index of one of the packages, or "".
func (p PythonPin) index() string {
	for _, requirement := range p.Requirements {
		if index := pypi.IndexOf(requirement); index != "" {
			return index
		}
	}
	return ""
}

// Else returns the missing needs that [Missing.Unstated] does not report.
func (m Missing) Else() Missing {
	m.Sources = slices.DeleteFunc(slices.Clone(m.Sources), func(s SourceNeed) bool { return s.Kind == recipe.Git })
	m.Images = slices.DeleteFunc(slices.Clone(m.Images), image.Image.Unstated)
	m.Python = slices.DeleteFunc(slices.Clone(m.Python), func(p PythonPin) bool { return p.index() != "" })
	return m
}

// And returns the union of m and n, each need once.
func (m Missing) And(n Missing) Missing {
	return Missing{
		Sources: distinct(slices.Concat(m.Sources, n.Sources)),
		Images:  distinct(slices.Concat(m.Images, n.Images)),
		Python:  distinct(slices.Concat(m.Python, n.Python)),
	}
}

// String lists the missing needs in words.
func (m Missing) String() string {
	var names []string
	for _, s := range m.Sources {
		names = append(names, "source "+asked(s.Project, s.Version, s.Python))
	}
	for _, i := range m.Images {
		names = append(names, "image "+i.Name)
	}
	for _, p := range m.Python {
		names = append(names, p.String())
	}
	return strings.Join(names, "; ")
}

// sources lists the source of a cell, and the source of its tests if it has tests.
func (d Draft) sources() []SourceNeed {
	if d.Tests.Kind == "" {
		return []SourceNeed{d.Source}
	}
	return []SourceNeed{d.Source, d.Tests}
}

// pythonNeeds lists the packages of the build, those of the gates, and those of the
// tests if there are any.
func (d Draft) pythonNeeds() []PythonPin {
	requires := d.Settings.Requires
	needs := []PythonPin{
		{Python: d.Vars["python"], Requirements: sorted(requires.Build)},
		{Python: d.Vars["python"], Requirements: sorted(requires.Run)},
	}
	if len(requires.Tests) > 0 && d.Tests.Kind != "" {
		needs = append(needs, PythonPin{Python: d.Vars["python"], Requirements: sorted(requires.Tests)})
	}
	return needs
}

// question returns the need as the key of pins, by which they are sorted.
func (p PythonPin) question() string {
	return strings.Join(append([]string{p.Python}, p.Requirements...), " ")
}

func sorted(s []string) []string {
	return append([]string{}, slices.Compact(slices.Sorted(slices.Values(s)))...)
}

// With returns f with the pins of g added. A pin of g replaces the pin of f for the
// same need. With changes neither.
func (f File) With(g File) File {
	merged := File{Schema: Schema, Recipe: f.Recipe}
	merged.Sources = merge(f.Sources, g.Sources, SourcePin.asks)
	merged.Images = merge(f.Images, g.Images, func(p ImagePin) string { return p.Name })
	merged.Python = merge(f.Python, g.Python, PythonPin.question)
	return merged
}

// merge returns the union of a and b sorted by key. Items of b take precedence.
func merge[T any](a, b []T, key func(T) string) []T {
	byKey := map[string]T{}
	for _, item := range slices.Concat(a, b) {
		byKey[key(item)] = item
	}
	merged := make([]T, 0, len(byKey))
	for _, item := range byKey {
		merged = append(merged, item)
	}
	slices.SortFunc(merged, func(x, y T) int { return strings.Compare(key(x), key(y)) })
	return merged
}

var (
	leaf  = regexp.MustCompile(`\{[^{}\[\]]*\}`)
	broke = regexp.MustCompile(`\n *`) // JSON has line breaks only between values
)

// Encode returns the lock as JSON with one pin per line. The last line is the sum of
// all pins.
func (f File) Encode() []byte {
	data, err := json.MarshalIndent(signed{f.With(File{}), f.sum()}, "", " ")
	if err != nil {
		panic(fmt.Sprintf("lock: a lock is not JSON: %v", err))
	}
	data = leaf.ReplaceAllFunc(data, func(block []byte) []byte {
		return broke.ReplaceAll(block, []byte(" "))
	})
	return append(data, '\n')
}

// Write replaces the lock at path atomically if its content differs. It reports whether
// it wrote. It refuses a lock that [Decode] would reject.
func Write(path string, f File) (bool, error) {
	data := f.Encode()
	if err := writable(path, f, data); err != nil {
		return false, err
	}
	return writeChanged(path, data)
}

// writeChanged replaces a file atomically if its content differs. It reports whether it
// wrote.
func writeChanged(path string, data []byte) (bool, error) {
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, data) {
		return false, nil
	}
	err := atomicfile.Write(path, data)
	return err == nil, err
}
