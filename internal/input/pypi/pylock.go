package pypi

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"builder/internal/input/store"
)

// pylock holds the used parts of a pylock.toml (PEP 751).
type pylock struct {
	Packages []struct {
		Name    string        `toml:"name"`
		Version string        `toml:"version"`
		Sdist   *pylockFile   `toml:"sdist"`
		Wheels  []*pylockFile `toml:"wheels"`
	} `toml:"packages"`
}

type pylockFile struct {
	Name   string            `toml:"name"`
	URL    string            `toml:"url"`
	Path   string            `toml:"path"`
	Size   int64             `toml:"size"`
	Hashes map[string]string `toml:"hashes"`
}

// release is one package of a lock with all its files in the index.
type release struct {
	project, version string
	files            []found
}

// found is a file and its current address. The address never leaves the process.
type found struct {
	File
	source store.Place
}

var digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)

// parsePylock parses a lock file of the directory dir. It refuses file names that could
// be paths, because the names come from an index and are used as file names.
func parsePylock(data []byte, dir string) ([]release, error) {
	var lock pylock
	if err := toml.Unmarshal(data, &lock); err != nil {
		return nil, fmt.Errorf("reading pylock.toml: %w", err)
	}
	releases := make([]release, len(lock.Packages))
	for i, p := range lock.Packages {
		if _, err := exact(p.Name, p.Version); err != nil {
			return nil, fmt.Errorf("reading pylock.toml: %w", err)
		}
		releases[i] = release{project: p.Name, version: p.Version}
		for _, f := range append(p.Wheels, p.Sdist) {
			if f == nil {
				continue
			}
			file, err := f.found(dir)
			if err != nil {
				return nil, fmt.Errorf("reading pylock.toml: %s %s: %w", p.Name, p.Version, err)
			}
			file.Project, file.Version = p.Name, p.Version
			releases[i].files = append(releases[i].files, file)
		}
	}
	return releases, nil
}

var errNoDigest = errors.New("the index has no sha256 for it")

func (f *pylockFile) found(dir string) (found, error) {
	name, source, err := f.place(dir)
	if err != nil {
		return found{}, err
	}
	sum := f.Hashes["sha256"]
	switch {
	case !versionPattern.MatchString(name):
		return found{}, fmt.Errorf("%q is not the name of a file", name)
	case f.Size < 0:
		return found{}, fmt.Errorf("%s: the size is %d", name, f.Size)
	case sum == "":
		return found{}, fmt.Errorf("%s: %w", name, errNoDigest)
	case !digestPattern.MatchString(sum):
		return found{}, fmt.Errorf("%s: %q is not a sha256", name, sum)
	}
	return found{File{Filename: name, Size: f.Size, SHA256: sum}, source}, nil
}

// place returns the file's name and address. Without a name field, the name is the last
// element of the URL or path.
func (f *pylockFile) place(dir string) (string, store.Place, error) {
	name := f.Name
	if f.URL == "" {
		if f.Path == "" {
			return "", "", errors.New("a file has no url and no path")
		}
		at := f.Path
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		if name == "" {
			name = filepath.Base(at)
		}
		return name, store.Place(at), nil
	}
	u, err := url.Parse(f.URL)
	if err != nil {
		return "", "", errors.New("the url of a file is not valid")
	}
	u.Fragment, u.RawFragment = "", ""
	if name == "" {
		name = path.Base(u.Path)
	}
	return strings.TrimSpace(name), store.Place(u.String()), nil
}
