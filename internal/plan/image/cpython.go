package image

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/input/store"
)

// cpythonFile holds the builds of CPython. All other files of the folder hold images.
const cpythonFile = "cpython.yaml"

// CPythonDir is the directory of a CPython in a root file system.
const CPythonDir = "/opt/cpython"

// A CPython is a build of CPython with its headers: one archive by digest. A recipe asks
// for it by its minor release, and it is laid into the build image and the run-time image
// at [CPythonDir]. An extension's ABI is that of the minor release, so a wheel serves
// every build of it.
//
// Exactly one of Maven and URL is set.
type CPython struct {
	Version string `yaml:"version" json:"version" jsonschema:"description=release: 3.12.1"`
	Maven   string `yaml:"maven,omitempty" json:"maven,omitempty" jsonschema:"description=path of a .jar in a Maven repository"`
	URL     string `yaml:"url,omitempty" json:"url,omitempty" jsonschema:"description=address of a .tar.gz such as one of python-build-standalone"`
	Folder  string `yaml:"folder" json:"folder" jsonschema:"description=folder of the archive with bin and include and lib"`
	Size    int64  `yaml:"size" json:"size" jsonschema:"description=bytes"`
	SHA256  string `yaml:"sha256" json:"sha256" jsonschema:"pattern=^[0-9a-f]{64}$"`
	// Floor is the glibc that the interpreter needs. The wheel has its own floor.
	Floor string `yaml:"floor" json:"floor" jsonschema:"description=oldest glibc that starts the interpreter"`
}

// Minor returns the minor release, such as "3.12".
func (c CPython) Minor() string {
	major, rest, _ := strings.Cut(c.Version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// Filename returns the name of the archive.
func (c CPython) Filename() string { return path.Base(c.Maven + c.URL) }

// URLs returns the addresses of the archive: its own, or one in each Maven repository.
func (c CPython) URLs(repositories []string) []string {
	if c.URL != "" {
		return []string{c.URL}
	}
	var urls []string
	for _, base := range repositories {
		urls = append(urls, strings.TrimSuffix(base, "/")+"/"+c.Maven)
	}
	return urls
}

// Blob returns the archive as a file of the store.
func (c CPython) Blob() store.Blob {
	return store.Blob{Name: c.Filename(), Size: c.Size, SHA256: c.SHA256}
}

var (
	releaseOfPython = regexp.MustCompile(`^3\.\d+\.\d+$`)
	pathInArchive   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]*(/[A-Za-z0-9][A-Za-z0-9._+-]*)*$`)
	hexDigest       = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// LoadCPythons reads cpython.yaml of fsys, which may be missing. Positions in error
// messages begin with dir. The first build of a minor release is the one in use.
func LoadCPythons(fsys fs.FS, dir string) ([]CPython, error) {
	name := path.Join(dir, cpythonFile)
	data, err := fs.ReadFile(fsys, cpythonFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	var all Catalogue
	f, err := decode.YAML(name, data, &all)
	if err != nil {
		return nil, err
	}
	if len(all.Images) > 0 {
		f.Add("images", "images stand in another file: %s holds CPythons", cpythonFile)
	}
	for i, c := range all.CPythons {
		for _, problem := range c.problems() {
			f.Add(fmt.Sprintf("cpythons[%d]", i), "CPython %q: %s", c.Version, problem)
		}
	}
	return all.CPythons, f.Err()
}

func (c CPython) problems() []string {
	var p []string
	if !releaseOfPython.MatchString(c.Version) {
		p = append(p, "version is not a release such as 3.12.1")
	}
	if (c.Maven == "") == (c.URL == "") {
		p = append(p, "write exactly one of maven and url")
	}
	if c.Maven != "" && (!pathInArchive.MatchString(c.Maven) || !strings.HasSuffix(c.Maven, ".jar")) {
		p = append(p, "maven is not the path of a .jar, relative to a repository")
	}
	if c.URL != "" && (!strings.HasPrefix(c.URL, "https://") || !strings.HasSuffix(c.URL, ".tar.gz")) {
		p = append(p, "url is not the https address of a .tar.gz")
	}
	if !pathInArchive.MatchString(c.Folder) {
		p = append(p, "folder is not a folder of the archive")
	}
	if c.Size <= 0 || !hexDigest.MatchString(c.SHA256) {
		p = append(p, "size or sha256 is missing or not valid")
	}
	return p
}

// With returns the image with c in place of its own interpreter.
func (i Image) With(c CPython) Image {
	i.CPython = &c
	i.Python = CPythonDir + "/bin/python" + c.Minor()
	i.Site = false
	i.Provides = maps.Clone(i.Provides)
	i.Provides["python"] = Fact{Is: c.Minor(), Probe: i.Python + ` -c 'import sys; print("%d.%d" % sys.version_info[:2])'`}
	return i
}
