package wheel

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// An Installed is an installed distribution.
type Installed struct {
	Project, Version string   // as in METADATA, the name normalised
	Info             string   // its .dist-info directory
	Tags             []string // of its WHEEL, sorted
	site             string   // directory of packages
	record           []Listed
	others           map[string]bool // files that other distributions in site list
}

// FindInstalled finds a distribution in an environment, named as for [SitePackages].
func FindInstalled(environment, name string) (Installed, error) {
	sites, err := SitePackages(environment)
	if err != nil {
		return Installed{}, diag.Errorf(diag.Usage, "%s: %w", environment, err).
			WithHint("name a Python interpreter, a virtual environment, or a site-packages directory")
	}
	var found, others []Installed
	var names []string
	for _, site := range sites {
		infos, err := fs.Glob(os.DirFS(site), "*.dist-info")
		if err != nil {
			return Installed{}, err
		}
		for _, info := range infos {
			in, err := readInstalled(site, filepath.Join(site, info))
			names = append(names, in.Project)
			switch {
			case in.Project != NormalName(name):
				others = append(others, in)
			case err != nil:
				return in, diag.Errorf(diag.Gate, "%w", err)
			default:
				found = append(found, in)
			}
		}
	}
	switch len(found) {
	case 0:
		return Installed{}, diag.Errorf(diag.Usage, "%s has no distribution %q", environment, name).WithHint("%s", diag.DidYouMean(name, names))
	case 1:
		return found[0].among(others), nil
	}
	return Installed{}, diag.Errorf(diag.Gate, "%s has %s and %s: Python finds either", environment, found[0].Info, found[1].Info).
		WithHint("install it again, or name the directory of packages")
}

// readInstalled reads the .dist-info directory of a distribution. Leftovers without
// METADATA have no name.
func readInstalled(site, info string) (in Installed, err error) {
	in = Installed{Info: info, site: site}
	metadata, err := readHeader(filepath.Join(info, "METADATA"))
	if err != nil {
		return in, err
	}
	in.Project, in.Version = NormalName(metadata.Get("Name")), metadata.Get("Version")
	about, err := readHeader(filepath.Join(info, "WHEEL"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return in, err
	}
	in.Tags = sortedSet(about.Values("Tag"))
	text, err := regular.ReadFollowed(filepath.Join(info, "RECORD"), maxRecord)
	if errors.Is(err, fs.ErrNotExist) { // such as of a distribution from Debian
		return in, nil
	}
	if err == nil {
		in.record, err = ParseRecord(text)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", info, err)
	}
	return in, err
}

func readHeader(file string) (Header, error) {
	text, err := regular.ReadFollowed(file, maxHeader)
	if err != nil {
		return nil, err
	}
	h, err := ParseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return h, nil
}

// among adds the files that other distributions list in the same directory.
func (in Installed) among(others []Installed) Installed {
	in.others = map[string]bool{}
	for _, other := range others {
		if other.site != in.site {
			continue
		}
		for _, l := range other.record {
			in.others[l.Path] = true
		}
	}
	return in
}

// SitePackages lists the directories of packages of an interpreter, of a virtual
// environment or another prefix, or the directory of packages itself. It runs nothing.
func SitePackages(environment string) ([]string, error) {
	prefix, err := filepath.Abs(environment)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(prefix)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if !info.IsDir() {
		if prefix, err = prefixOf(prefix); err != nil {
			return nil, err
		}
	}
	here := os.DirFS(prefix)
	infos, _ := fs.Glob(here, "*.dist-info") // the patterns are valid
	if base := filepath.Base(prefix); len(infos) > 0 || base == "site-packages" || base == "dist-packages" {
		return []string{prefix}, nil
	}
	var sites []string
	var seen []fs.FileInfo // lib64 is often a link to lib
	for _, pattern := range []string{"local/lib/python3*/dist-packages", "lib/python3*/site-packages", "lib64/python3*/site-packages", "lib/python3/dist-packages"} {
		found, _ := fs.Glob(here, pattern)
		for _, name := range found {
			is, err := fs.Stat(here, name)
			if err == nil && !slices.ContainsFunc(seen, func(other fs.FileInfo) bool { return os.SameFile(is, other) }) {
				seen, sites = append(seen, is), append(sites, filepath.Join(prefix, name))
			}
		}
	}
	if len(sites) == 0 {
		return nil, errors.New("no packages found: there are neither *.dist-info nor lib/python3*/site-packages")
	}
	return sites, nil
}

// prefixOf returns the prefix of an interpreter. A virtual environment links to the
// interpreter of another prefix.
func prefixOf(python string) (string, error) {
	prefix := filepath.Dir(filepath.Dir(python))
	if _, err := os.Stat(filepath.Join(prefix, "pyvenv.cfg")); err == nil {
		return prefix, nil
	}
	real, err := filepath.EvalSymlinks(python)
	return filepath.Dir(filepath.Dir(real)), err
}

// digestOf returns the SHA-256 of a file, in hexadecimal.
func digestOf(path string) (string, error) {
	f, err := regular.Follow(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}
