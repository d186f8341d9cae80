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
	"net/url"
	"path"
	"strings"

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
