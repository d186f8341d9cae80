// Package image describes base images: a container image in a registry, or a Debian
// root file system made from a locked list of packages, each with its facts. Every run
// probes the facts before the first compile and fails if one differs.
//
// An [Image] is as written. Package lock resolves its names to a digest or to packages.
// Package pipelines runs the probes.
package image

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/internal/base/subst"
	"builder/internal/input/deb"
)

// An Image is a base for building or running, as written. Exactly one of Debian and
// Registry is set.
type Image struct {
	Name     string  `yaml:"name" json:"name"`
	Summary  string  `yaml:"summary" json:"summary"`
	Debian   *Debian `yaml:"debian,omitempty" json:"debian,omitempty"`
	Registry string  `yaml:"registry,omitempty" json:"registry,omitempty" jsonschema:"description=reference with a tag; the lock holds the digest"`
	Digest   string  `yaml:"digest,omitempty" json:"digest,omitempty" jsonschema:"pattern=^(sha256:[0-9a-f]{64}|{{digest}})$,description=manifest digest for linux/amd64 where it is known"`
	Python   string  `yaml:"python" json:"python" jsonschema:"description=absolute path of the interpreter"`
	// Site is set if the packages of the interpreter belong to the image. A build then
	// sees the framework installed in the image.
	Site     bool              `yaml:"site,omitempty" json:"site,omitempty" jsonschema:"description=the packages of the interpreter are part of the image: a framework say"`
	Setup    string            `yaml:"setup,omitempty" json:"setup,omitempty" jsonschema:"description=shell script run once as root without a network"`
	Env      map[string]string `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=environment of every step in this image"`
	Provides map[string]Fact   `yaml:"provides" json:"provides" jsonschema:"description=facts that patches and recipes may name"`
	// CPython is set if a recipe lays one into the image.
	CPython *CPython `yaml:"-" json:"-"`
	// For makes one image of each row. {{name}} is replaced by the row's value.
	For []map[string]string `yaml:"for,omitempty" json:"for,omitempty" jsonschema:"description=one image for each row; {{name}} in the texts is the value of the row; an empty value states nothing"`
}

// Debian describes a root file system: debootstrap's minbase packages of the first
// suite, and Packages. The files of Unpack are laid beside them, without dependencies
// and without dpkg: programs of a later suite that need nothing of its libraries.
type Debian struct {
	Suites   []Suite  `yaml:"suites" json:"suites" jsonschema:"minItems=1"`
	Packages []string `yaml:"packages" json:"packages" jsonschema:"description=name; name/suite"`
	Unpack   []string `yaml:"unpack,omitempty" json:"unpack,omitempty" jsonschema:"description=name/suite of packages whose files are laid into the image without their dependencies"`
}

// A Suite is a Debian release with apt's pin priority.
type Suite = deb.Suite

// A Fact is a property of an image and the shell command that verifies it. The
// command's output, without surrounding white space, must equal Is.
type Fact struct {
	Is    string `yaml:"is" json:"is"`
	Probe string `yaml:"probe" json:"probe"`
}

// Unstated reports whether the image is named by a tag alone. Its registry has the
// tag's current digest.
func (i Image) Unstated() bool { return i.Registry != "" && i.Digest == "" }

// Reference returns the reference of a registry image, with its digest if it is stated,
// or "".
func (i Image) Reference() string {
	if i.Registry == "" || i.Digest == "" {
		return i.Registry
	}
	return i.Registry + "@" + i.Digest
}

// Facts returns the values of the stated facts by name.
func (i Image) Facts() map[string]string {
	facts := make(map[string]string, len(i.Provides))
	for name, fact := range i.Provides {
		facts[name] = fact.Is
	}
	return facts
}

// Catalogue is the content of one file.
type Catalogue struct {
	Images   []Image   `yaml:"images,omitempty" json:"images,omitempty"`
	CPythons []CPython `yaml:"cpythons,omitempty" json:"cpythons,omitempty" jsonschema:"description=only in cpython.yaml"`
}

// Load reads every *.yaml of fsys except cpython.yaml. Positions in error messages begin with dir.
func Load(fsys fs.FS, dir string) ([]Image, error) {
	seen := map[string]string{} // the file of each name
	files, err := decode.Folder(fsys, dir, func(file string, data []byte) ([]Image, error) {
		if path.Base(file) == cpythonFile {
			return nil, nil
		}
		images, err := parse(file, data)
		errs := []error{err}
		for _, img := range images {
			if other, ok := seen[img.Name]; ok {
				errs = append(errs, diag.At(diag.Pos{File: file}, "image %q is also in %s", img.Name, other))
			}
			seen[img.Name] = file
		}
		return images, errors.Join(errs...)
	})
	return slices.Concat(files...), err
}

// parse parses the images of one file.
func parse(name string, data []byte) ([]Image, error) {
	var c Catalogue
	f, err := decode.YAML(name, data, &c)
	if err != nil {
		return nil, err
	}
	var all []Image
	if len(c.CPythons) > 0 {
		f.Add("cpythons", "cpythons stand in %s", cpythonFile)
	}
	for i, written := range c.Images {
		at := fmt.Sprintf("images[%d]", i)
		f.Env(at+".env", written.Env)
		members, err := written.members()
		for _, e := range diag.All(err) {
			f.Add(at, "image %q: %w", written.Name, e.Err).Hint = e.Hint
		}
		for _, img := range members {
			for _, problem := range img.problems() {
				f.Add(at, "image %q: %s", img.Name, problem)
			}
		}
		all = append(all, members...)
	}
	return all, f.Err()
}

// problems lists the problems of an image that its types and tags cannot express.
func (i Image) problems() []string {
	var p []string
	if !path.IsAbs(i.Python) {
		p = append(p, "python is not an absolute path")
	}
	if i.Env["PATH"] == "" {
		p = append(p, "env has no PATH: steps get only the variables of env")
	}
	p = append(p, i.baseProblems()...)
	for name, fact := range i.Provides {
		p = append(p, fact.problems(name)...)
	}
	slices.Sort(p)
	return p
}

// baseProblems lists the problems of an image's origin.
func (i Image) baseProblems() []string {
	var p []string
	if (i.Debian == nil) == (i.Registry == "") {
		p = append(p, "write exactly one of debian and registry")
	}
	if i.Debian != nil {
		for _, s := range i.Debian.Suites {
			for _, word := range append([]string{s.Name}, s.Components...) {
				if word != "" && !suiteWord.MatchString(word) {
					p = append(p, fmt.Sprintf("%q is not the name of a suite or a component such as trixie; {{name}} needs a row of for with the name", word))
				}
			}
		}
	}
	if i.Registry != "" && !strings.Contains(path.Base(i.Registry), ":") {
		p = append(p, "registry has no tag")
	}
	if i.Digest != "" && !digest.MatchString(i.Digest) {
		p = append(p, "digest must be sha256: and 64 hexadecimal digits")
	}
	if i.Digest != "" && i.Registry == "" {
		p = append(p, "digest is set without registry")
	}
	return p
}

// problems lists the problems of a fact. Its name is part of a shell script.
func (f Fact) problems(name string) []string {
	var p []string
	if !factName.MatchString(name) {
		p = append(p, fmt.Sprintf("the name of a fact must be a word such as rocm-path, not %q", name))
	}
	if f.Is == "" || f.Probe == "" {
		p = append(p, fmt.Sprintf("fact %s needs both is and probe", name))
	}
	if strings.ContainsAny(f.Is, "\n\t") || strings.TrimSpace(f.Is) != f.Is {
		p = append(p, fmt.Sprintf("fact %s has white space around it or several lines, which no probe prints", name))
	}
	return p
}

var (
	digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	// suiteWord is a word of apt's list of sources.
	suiteWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./_+-]*$`)
	factName  = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)
)

// Find returns the image with the given name.
func Find(all []Image, name string) (Image, error) {
	i := slices.IndexFunc(all, func(img Image) bool { return img.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for j, img := range all {
			names[j] = img.Name
		}
		return Image{}, diag.Errorf(diag.Usage, "unknown image %q", name).WithHint("%s", diag.DidYouMean(name, names))
	}
	return all[i], nil
}

// members returns the images of one entry of a file: the entry itself, or one image for
// each row of For. A fact, a digest or a package left empty by a row is not stated.
func (i Image) members() ([]Image, error) {
	if len(i.For) == 0 {
		return []Image{i}, nil
	}
	var all []Image
	var errs []error
	for _, row := range i.For {
		member, err := i.member(row)
		errs = append(errs, err, unused(i, row))
		all = append(all, member)
	}
	return all, errors.Join(errs...)
}

// member replaces names in the texts of i with the values of a row.
func (i Image) member(row map[string]string) (Image, error) {
	i.For = nil
	m, err := subst.Deep(i, row)
	maps.DeleteFunc(m.Provides, func(_ string, fact Fact) bool { return fact.Is == "" })
	if m.Debian != nil {
		isEmpty := func(name string) bool { return name == "" }
		m.Debian.Packages = slices.DeleteFunc(m.Debian.Packages, isEmpty)
		m.Debian.Unpack = slices.DeleteFunc(m.Debian.Unpack, isEmpty)
	}
	return m, err
}

// unused returns an error for each value of a row that no text of the entry names,
// because it is probably a typing error.
func unused(i Image, row map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(row)) {
		fewer := maps.Clone(row)
		delete(fewer, name)
		if _, err := i.member(fewer); err == nil {
			errs = append(errs, diag.Errorf(diag.Usage, "no text uses {{%s}} of the row", name))
		}
	}
	return errors.Join(errs...)
}
