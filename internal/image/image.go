// Package image holds build bases: a container image in a registry, or a Debian
// root file system made from a locked list of packages, and the facts that each
// states about itself. Every run probes the facts and compares: a base that is
// not what it says is an error before the first compile.
package image

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"builder/internal/decode"
	"builder/internal/diag"
)

// An Image is a build or run-time base as written. Exactly one of Debian and
// Registry is set.
type Image struct {
	Name     string            `yaml:"name" json:"name"`
	Summary  string            `yaml:"summary" json:"summary"`
	Debian   *Debian           `yaml:"debian,omitempty" json:"debian,omitempty"`
	Registry string            `yaml:"registry,omitempty" json:"registry,omitempty" jsonschema:"description=reference with a tag; the lock holds the digest"`
	Digest   string            `yaml:"digest,omitempty" json:"digest,omitempty" jsonschema:"pattern=^sha256:[0-9a-f]{64}$,description=manifest digest for linux/amd64 where it is known"`
	Python   string            `yaml:"python" json:"python" jsonschema:"description=absolute path of the interpreter"`
	Setup    string            `yaml:"setup,omitempty" json:"setup,omitempty" jsonschema:"description=shell script run once as root without a network"`
	Env      map[string]string `yaml:"env,omitempty" json:"env,omitempty" jsonschema:"description=environment of every step in this image"`
	Provides map[string]Fact   `yaml:"provides" json:"provides" jsonschema:"description=facts that patches and recipes may name"`
}

// Debian asks for a root file system: the packages that debootstrap calls
// minbase of the first suite, and these.
type Debian struct {
	Suites   []Suite  `yaml:"suites" json:"suites" jsonschema:"minItems=1"`
	Packages []string `yaml:"packages" json:"packages" jsonschema:"description=name; name/suite"`
}

// A Suite is a Debian release, with apt's pin priority (0 means apt's 500).
type Suite struct {
	Name       string   `yaml:"name" json:"name"`
	Components []string `yaml:"components" json:"components"`
	Priority   int      `yaml:"priority,omitempty" json:"priority,omitempty"`
}

// A Fact is what an image says about itself and the shell command that shows
// whether it is so: its output, without surrounding white space, must equal Is.
type Fact struct {
	Is    string `yaml:"is" json:"is"`
	Probe string `yaml:"probe" json:"probe"`
}

// Facts returns the stated facts as name to value.
func (i Image) Facts() map[string]string {
	facts := make(map[string]string, len(i.Provides))
	for name, fact := range i.Provides {
		facts[name] = fact.Is
	}
	return facts
}

// Catalogue is the content of one file.
type Catalogue struct {
	Images []Image `yaml:"images" json:"images"`
}

// Load reads every *.yaml of fsys; dir is what positions in messages begin with.
func Load(fsys fs.FS, dir string) ([]Image, error) {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []Image
	var faults []error
	seen := map[string]string{}
	for _, file := range files {
		images, err := loadFile(fsys, dir, file)
		faults = append(faults, err)
		for _, img := range images {
			if other, ok := seen[img.Name]; ok {
				faults = append(faults, diag.At(diag.Pos{File: path.Join(dir, file)}, "image %q is in %s too", img.Name, other))
			}
			seen[img.Name] = path.Join(dir, file)
		}
		all = append(all, images...)
	}
	return all, errors.Join(faults...)
}

func loadFile(fsys fs.FS, dir, file string) ([]Image, error) {
	data, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	name := path.Join(dir, file)
	var c Catalogue
	if err := decode.YAML(name, data, &c); err != nil {
		return nil, err
	}
	index, err := decode.Positions(name, data)
	if err != nil {
		return nil, err
	}
	var faults []error
	for i, img := range c.Images {
		for _, problem := range img.problems() {
			faults = append(faults, diag.At(index.At("images[%d]", i), "image %q: %s", img.Name, problem))
		}
	}
	return c.Images, errors.Join(faults...)
}

// problems lists what is wrong with an image as written.
func (i Image) problems() []string {
	var p []string
	if i.Name == "" {
		p = append(p, "name is missing")
	}
	if (i.Debian == nil) == (i.Registry == "") {
		p = append(p, "exactly one of debian and registry is wanted")
	}
	if i.Debian != nil && len(i.Debian.Suites) == 0 {
		p = append(p, "debian names no suite")
	}
	if i.Registry != "" && !strings.Contains(path.Base(i.Registry), ":") {
		p = append(p, "registry has no tag")
	}
	if !path.IsAbs(i.Python) {
		p = append(p, "python is not an absolute path")
	}
	if i.Env["PATH"] == "" {
		p = append(p, "env has no PATH: steps see nothing but what is stated")
	}
	for name, fact := range i.Provides {
		if fact.Is == "" || fact.Probe == "" {
			p = append(p, "fact "+name+" needs both is and probe")
		}
	}
	slices.Sort(p)
	return p
}

// Find returns the image of that name.
func Find(all []Image, name string) (Image, error) {
	i := slices.IndexFunc(all, func(img Image) bool { return img.Name == name })
	if i < 0 {
		names := make([]string, len(all))
		for j, img := range all {
			names[j] = img.Name
		}
		return Image{}, diag.Errorf(diag.Usage, "no image is called %q", name).WithHint("%s", diag.DidYouMean(name, names))
	}
	return all[i], nil
}
