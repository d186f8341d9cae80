// Package deb makes root file systems from Debian packages: from names to a
// locked list ([Resolve], the only part that uses a network, through the host's
// apt), and from the list to a file system that is a function of it
// ([Bootstrap] for the packages that every other needs, [InstallScript] for the
// rest, run inside).
//
// Where the archive is, is configuration: the user's mirrors, the host's own
// apt configuration, or a snapshot archive by date. No host is named here. The
// files of a list are brought by internal/build/fetch.
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
	// Bootstrap says that the package belongs to the set that is unpacked
	// without dpkg, because dpkg itself needs it.
	Bootstrap bool `json:"bootstrap,omitempty"`
}

// Blob names the package's file in the store.
func (p Package) Blob() store.Blob {
	return store.Blob{Name: path.Base(p.Path), Size: p.Size, SHA256: p.SHA256}
}

// URLs lists the places where a file of a pool may be had, given the path of a
// [Package]: each mirror, then the snapshot archive, if one is configured, as it
// was on a date (20261121T000000Z).
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

// join appends a path to an address, escaped: versions hold plus signs and
// tildes.
func join(base, name string) string {
	escaped := (&url.URL{Path: name}).EscapedPath()
	return strings.TrimSuffix(base, "/") + "/" + escaped
}
