// Package deb makes root file systems from Debian packages. [Resolve] turns package
// names into a locked list. It uses the host's apt and is the only part with network
// access. [Bootstrap] and [InstallScript] turn the list into a file system that depends
// on the list alone: Bootstrap unpacks the packages required by dpkg itself, and
// InstallScript installs the rest inside.
//
// The archive's address is configuration: the user's mirrors, the host's apt
// configuration, or a snapshot archive with a date. This package names no host.
// internal/build/fetch downloads the files of a list.
package deb

import (
	"context"
	_ "embed"
	"net/url"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
	"builder/internal/base/shell"
	"builder/internal/input/store"
)

// A Package is one binary package of a locked list.
type Package struct {
	Name         string `json:"name"`
	Version      string `json:"version"`
	Architecture string `json:"architecture"`
	Path         string `json:"path"` // below the archive's base: pool/main/…/name_version_arch.deb
	Size         int64  `json:"size"` // bytes
	SHA256       string `json:"sha256"`
	// Bootstrap marks the packages unpacked without dpkg, because dpkg itself needs
	// them.
	Bootstrap bool `json:"bootstrap,omitempty"`
	// Unpack marks the packages whose files are laid into the system without dpkg.
	Unpack bool `json:"unpack,omitempty"`
}

// Blob returns the name, size and digest of the package's file for the store.
func (p Package) Blob() store.Blob {
	return store.Blob{Name: path.Base(p.Path), Size: p.Size, SHA256: p.SHA256}
}

// URLs lists the addresses of a pool file, given the path of a [Package]: first each
// mirror, then the snapshot archive at a date (20261121T000000Z), if both are set.
func URLs(mirrors []string, snapshot, date, pool string) []string {
	var urls []string
	for _, m := range mirrors {
		urls = append(urls, join(m, pool))
	}
	if snapshot != "" && date != "" {
		urls = append(urls, join(snapshot, "archive/debian/"+date+"/"+pool))
	}
	return urls
}

// join appends an escaped path to an address. Versions hold plus signs and tildes.
func join(base, name string) string {
	escaped := (&url.URL{Path: name}).EscapedPath()
	return strings.TrimSuffix(base, "/") + "/" + escaped
}

// Mirror returns the mirror used to resolve names.
func Mirror(mirrors []string) (string, error) {
	if len(mirrors) == 0 {
		return "", diag.Errorf(diag.Fetch, "no Debian mirror: the host's apt configuration has none").
			WithHint("set BUILDER_MIRROR_DEBIAN to the address of a mirror")
	}
	return mirrors[0], nil
}

// HostMirrors returns the base addresses of the Debian archives in the host's apt
// configuration. apt reads the configuration itself and asks no archive. A host without
// apt has no mirrors.
func HostMirrors(ctx context.Context) []string {
	out, err := exec.CommandContext(ctx, "apt-get", "update", "--print-uris").Output()
	if err != nil {
		return nil
	}
	return parseIndexes(string(out))
}

// indexLine is the line of apt about the index of a Debian suite:
//
//	'http://…/debian/dists/trixie/main/binary-amd64/Packages.xz' …_Packages 0
//
// The archives of Ubuntu, of security updates and of third parties have other names.
var indexLine = regexp.MustCompile(`(?m)^'((?:https?://|file:)[^']*/debian)/dists/` +
	`(?:bullseye|bookworm|trixie|forky|duke|sid|(?:old|oldold)?stable|testing|unstable)(?:-[^/']*)?/[^']*/binary-[^/']*/Packages`)

// parseIndexes returns the addresses of the Debian archives in apt's list of indexes.
func parseIndexes(text string) []string {
	var mirrors []string
	for _, m := range indexLine.FindAllStringSubmatch(text, -1) {
		if !slices.Contains(mirrors, m[1]) {
			mirrors = append(mirrors, m[1])
		}
	}
	return mirrors
}

//go:embed install.sh
var installScript string

// InstallScript returns a shell script to run as root in the bootstrapped file system.
// It needs no network: dir holds all packages of the list under their file names. The
// script fails unless exactly the packages of the list are installed, except those to
// unpack, whose files it lays beside them.
func InstallScript(packages []Package, dir string) string {
	var bootstrap, all, want, unpack []string
	for _, p := range packages {
		file := shell.Quote(path.Join(dir, path.Base(p.Path)))
		if p.Unpack {
			unpack = append(unpack, file)
			continue
		}
		all = append(all, file)
		if p.Bootstrap {
			bootstrap = append(bootstrap, file)
		}
		want = append(want, p.Name+" "+p.Version)
	}
	slices.Sort(want)
	return strings.NewReplacer(
		"@BOOTSTRAP@", strings.Join(bootstrap, " "),
		"@ALL@", strings.Join(all, " "),
		"@WANT@", strings.Join(want, "\n"),
		"@UNPACK@", strings.Join(unpack, " "),
	).Replace(installScript)
}
