package lock

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/input/deb"
	"builder/internal/input/pypi"
)

// Decode parses a lock. name is its path in error messages. Decode rejects unknown and
// repeated fields, another schema, and invalid pins. If the sum does not match the
// pins, the error is [ErrEdited].
func Decode(name string, data []byte) (File, error) {
	var s signed
	if err := decode.JSON(data, &s); err != nil {
		return File{}, unreadable(name, err)
	}
	if s.Schema != Schema {
		return File{}, diag.Errorf(diag.Drift, "%s: the schema is %d, and this builder reads %d", name, s.Schema, Schema)
	}
	if err := errors.Join(s.check(name), s.edited(name)); err != nil {
		return File{}, err
	}
	return s.File, nil
}

func unreadable(name string, err error) error {
	pos := diag.Pos{File: name}
	if fault, ok := errors.AsType[*decode.Fault](err); ok {
		pos.Line = fault.Line
	}
	return &diag.Error{
		Pos: pos, Code: diag.Drift, Err: fmt.Errorf("reading the lock: %w", err),
		Hint: "restore the file, or remove it and write a new one with `builder lock`",
	}
}

var (
	word        = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~:-]*$`)
	hexDigest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	plainFile   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~-]*$`)
	poolPath    = regexp.MustCompile(`^pool(/[A-Za-z0-9][A-Za-z0-9._+~%-]*)+\.deb$`)
	imageDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	gitCommit   = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)
	indexDate   = regexp.MustCompile(`^\d{8}T\d{6}Z$`)
)

// checker collects the problems of a lock's pins.
type checker struct {
	name string
	errs []error
	seen map[string]bool
}

func (c *checker) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.errs = append(c.errs, diag.Errorf(diag.Drift, "%s: %s", c.name, text).WithHint("%s", restore))
}

// once rejects a second pin for one need.
func (c *checker) once(format string, args ...any) {
	question := fmt.Sprintf(format, args...)
	if c.seen[question] {
		c.problem("%s is pinned twice", question)
	}
	c.seen[question] = true
}

// check rejects incomplete pins, two pins for one need, and pins that could misdirect a
// download: an invalid digest, or a path outside the pool.
func (f File) check(name string) error {
	c := &checker{name: name, seen: map[string]bool{}}
	if !word.MatchString(f.Recipe) {
		c.problem("%q is not the name of a recipe", f.Recipe)
	}
	for _, file := range f.Sources {
		c.once("source %s", file.asks())
		c.source(file)
	}
	for _, img := range f.Images {
		c.once("image %s", img.Name)
		c.image(img)
	}
	for _, p := range f.Python {
		c.once("%s", p)
		if !word.MatchString(p.Python) {
			c.problem("%q is not a Python version", p.Python)
		}
		if len(p.Requirements) > 0 && len(p.Files) == 0 {
			c.problem("%s: no files", p)
		}
		for _, file := range p.Files {
			if err := checkFile(file); err != nil {
				c.problem("%v", err)
			}
		}
	}
	return errors.Join(c.errs...)
}

func (c *checker) source(s SourcePin) {
	if err := s.Check(); err != nil {
		c.problem("%v", err)
	}
	if s.Repository != "" || s.Commit == "" && s.Tag != "" {
		c.problem("%s %s: the pin of a git source needs a commit, and no repository", s.Project, s.Version)
	}
	if s.IsWheel() != strings.HasSuffix(s.Filename, ".whl") || s.IsWheel() && !word.MatchString(s.Python) {
		c.problem("%s %s: a wheel needs a Python, and other sources have none", s.Project, s.Version)
	}
	if s.Path != "" {
		c.problem("%s %s: only the recipe pins an archive of a pool", s.Project, s.Version)
	}
}

// Check returns an error if the pin could misdirect a download: an invalid name, size,
// digest or commit. It counts for pins of entries too, which nobody may have signed.
func (p SourcePin) Check() error {
	if err := checkFile(p.File); err != nil {
		return err
	}
	if p.Commit != "" && (!gitCommit.MatchString(p.Commit) || p.Epoch <= 0) {
		return fmt.Errorf("%s %s: %q is not a commit with a date", p.Project, p.Version, p.Commit)
	}
	return nil
}

func checkFile(f pypi.File) error {
	if !word.MatchString(f.Project) || !word.MatchString(f.Version) || f.Index != "" && !word.MatchString(f.Index) {
		return fmt.Errorf("%q %q: the name, the version or the index is not valid", f.Project, f.Version)
	}
	if !hexDigest.MatchString(f.SHA256) || !plainFile.MatchString(f.Filename) || f.Size <= 0 {
		return fmt.Errorf("%s %s: the file name, the size or the sha256 is not valid", f.Project, f.Version)
	}
	return nil
}

func (c *checker) image(img ImagePin) {
	if !word.MatchString(img.Name) {
		c.problem("%q is not the name of an image", img.Name)
	}
	switch {
	case (img.Registry == "") == (img.Debian == nil):
		c.problem("image %s: write either a registry or Debian packages", img.Name)
	case img.Registry != "" && !imageDigest.MatchString(img.Digest):
		c.problem("image %s: %q is not a digest", img.Name, img.Digest)
	case img.Debian != nil && len(img.Packages) == 0:
		c.problem("image %s: no packages", img.Name)
	case img.Debian != nil && !indexDate.MatchString(img.Date):
		c.problem("image %s: %q is not a date such as 20261121T000000Z", img.Name, img.Date)
	}
	for _, p := range img.Packages {
		c.once("package %s of image %s", p.Name, img.Name)
		c.deb(p)
	}
}

func (c *checker) deb(p deb.Package) {
	if !word.MatchString(p.Name) || !word.MatchString(p.Version) || !word.MatchString(p.Architecture) {
		c.problem("package %q %q: the name, the version or the architecture is not valid", p.Name, p.Version)
		return
	}
	if !hexDigest.MatchString(p.SHA256) || !poolPath.MatchString(p.Path) || p.Size <= 0 {
		c.problem("package %s: the path, the size or the sha256 is not valid", p.Name)
	}
}
