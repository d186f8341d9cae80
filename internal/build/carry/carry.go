// Package carry moves the inputs of cells from a machine with a network to one without:
// the store files named by their entries. It writes them as one tar file.
//
// The first member is an index. It names every other member with its size and sha256.
// Reading trusts nothing else: it ends at a member missing from the index, in a
// different order, or not a regular file. Bytes enter a store only after their digest
// was checked.
//
// Equal content makes an equal file: members are sorted and carry no time, owner or
// mode of the writing machine.
package carry

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/decode"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// schema is the version of the format.
const schema = 3

const (
	indexName = "index.json"
	maxIndex  = 64 << 20 // enough for a million files
	maxEntry  = 16 << 20
	maxBlob   = 64 << 30
)

// The folders of an archive, in its order.
const (
	Entries = "entries"
	Blobs   = "sha256"
)

// An Index names every other member of an archive, in order.
type Index struct {
	Schema  int      `json:"schema"`
	Members []Member `json:"members"`
}

// A Member is a file of an archive. Its path is entries/KEY.json or sha256/DIGEST. The
// key of an entry is its digest.
type Member struct {
	Path   string `json:"path"`
	Name   string `json:"name"` // of the file; the ID of an entry
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// memberOf returns the member of a folder with this content.
func memberOf(folder string, b store.Blob) Member {
	name := b.SHA256
	if folder == Entries {
		name += ".json"
	}
	return Member{folder + "/" + name, b.Name, b.Size, b.SHA256}
}

func (m Member) folder() string   { return path.Dir(m.Path) }
func (m Member) blob() store.Blob { return store.Blob{Name: m.Name, Size: m.Size, SHA256: m.SHA256} }

// In returns the members of a folder.
func (x Index) In(folder string) []Member {
	return slices.DeleteFunc(slices.Clone(x.Members), func(m Member) bool { return m.folder() != folder })
}

// Bytes returns the total size of all members.
func (x Index) Bytes() int64 {
	var n int64
	for _, m := range x.Members {
		n += m.Size
	}
	return n
}

// order compares the places of two members in an archive.
func order(a, b Member) int {
	folders := []string{Entries, Blobs}
	return cmp.Or(slices.Index(folders, a.folder())-slices.Index(folders, b.folder()), strings.Compare(a.Path, b.Path))
}

// parseIndex reads an index and refuses anything this package would not write.
func parseIndex(r io.Reader) (Index, error) {
	data, err := regular.All(r, maxIndex)
	if err != nil {
		return Index{}, err
	}
	var version struct {
		Schema int `json:"schema"`
	}
	if err := decode.OpenJSON(data, &version); err != nil {
		return Index{}, err
	}
	if version.Schema != schema {
		return Index{}, fmt.Errorf("schema %d, this builder reads %d", version.Schema, schema)
	}
	var x Index
	if err := decode.JSON(data, &x); err != nil {
		return Index{}, err
	}
	return x, x.problem()
}

var (
	digest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	word   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~:%=@-]{0,254}$`)
)

// problem returns the first error in an index: a malformed path, name or digest, a size
// out of bounds, a duplicate, or a wrong order.
func (x Index) problem() error {
	for i, m := range x.Members {
		most := int64(maxEntry)
		switch m.folder() {
		case Blobs:
			most = maxBlob
		case Entries:
		default:
			return fmt.Errorf("%q is in no folder of an archive", m.Path)
		}
		switch {
		case !digest.MatchString(m.SHA256):
			return fmt.Errorf("%q has a malformed digest", m.Path)
		case m != memberOf(m.folder(), m.blob()):
			return fmt.Errorf("%q is not the path of a member with the digest %s", m.Path, m.SHA256)
		case !word.MatchString(m.Name):
			return fmt.Errorf("%q is not a valid name", m.Name)
		case m.Size < 0 || m.Size > most:
			return fmt.Errorf("%s has %d bytes, the limit is %d", m.Path, m.Size, most)
		case i > 0 && order(x.Members[i-1], m) >= 0:
			return fmt.Errorf("%s is not in its place", m.Path)
		}
	}
	return nil
}
