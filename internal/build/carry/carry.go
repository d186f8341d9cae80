// Package carry moves the inputs of cells from a machine with a network to one without:
// the store files named by their entries, and the results of cells that passed. It
// writes them as one tar file.
//
// The first member is an index. It names every other member with its size and sha256.
// Reading trusts nothing else: it ends at a member missing from the index, in a
// different order, or not a regular file. Bytes enter a store only after their digest
// was checked.
//
// Equal content makes an equal file: members are sorted and carry no time, owner or
// mode of the writing machine.
//
// The caller selects the content and decides whether to trust a result. To this package
// a record is bytes.
package carry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"builder/internal/base/decode"
	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// schema is the version of the format.
const schema = 1

const (
	indexName = "index.json"
	maxIndex  = 64 << 20 // enough for a million files
	maxRecord = 16 << 20 // an entry, or the record of a result
	maxBlob   = 64 << 30
)

// An Index names every member of an archive.
type Index struct {
	Schema  int    `json:"schema"`
	Builder string `json:"builder"` // version that wrote the index, for messages
	Cells   []Cell `json:"cells"`
	Blobs   []Blob `json:"blobs"`
	Results []Blob `json:"results"` // named by cell key
}

// A Cell is a cell in the archive. Key is the sha256 of its entry file.
type Cell struct {
	ID   string `json:"id"`
	Key  string `json:"key"`
	Size int64  `json:"size"`
}

// A Blob is a file of the store or a record.
type Blob struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// member is a file in the archive.
type member struct {
	path string
	kind kind
	blob store.Blob
}

type kind int

const (
	entry kind = iota
	blob
	result
)

// members lists all members in archive order. Results follow their inputs.
func (x Index) members() []member {
	var all []member
	for _, c := range x.Cells {
		all = append(all, member{"entries/" + c.Key + ".json", entry, store.Blob{Name: c.ID, Size: c.Size, SHA256: c.Key}})
	}
	for _, b := range x.Blobs {
		all = append(all, member{"sha256/" + b.SHA256, blob, store.Blob(b)})
	}
	for _, r := range x.Results {
		all = append(all, member{"results/" + r.Name + ".json", result, store.Blob(r)})
	}
	return all
}

// Bytes returns the total size of all members.
func (x Index) Bytes() int64 {
	var n int64
	for _, m := range x.members() {
		n += m.blob.Size
	}
	return n
}

// sort puts an index into its canonical order.
func (x *Index) sort() {
	slices.SortFunc(x.Cells, func(a, b Cell) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Key, b.Key)) })
	slices.SortFunc(x.Blobs, func(a, b Blob) int { return cmp.Compare(a.SHA256, b.SHA256) })
	slices.SortFunc(x.Results, func(a, b Blob) int { return cmp.Compare(a.Name, b.Name) })
}

func (x Index) encode() []byte {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(x); err != nil {
		panic(fmt.Sprintf("carry: an index is not JSON: %v", err)) // unreachable: strings and integers only
	}
	return text.Bytes()
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
	if err := json.Unmarshal(data, &version); err != nil {
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

// problem returns the first error in an index: a malformed name or digest, a size out of
// bounds, a duplicate, or a wrong order.
func (x Index) problem() error {
	seen := map[string]bool{}
	for _, m := range x.members() {
		most := int64(maxRecord)
		if m.kind == blob {
			most = maxBlob
		}
		switch {
		case !digest.MatchString(m.blob.SHA256) || m.kind == result && !digest.MatchString(m.blob.Name):
			return fmt.Errorf("%q has a malformed digest or key", m.path)
		case !word.MatchString(m.blob.Name):
			return fmt.Errorf("%q is not a valid name", m.blob.Name)
		case m.blob.Size < 0 || m.blob.Size > most:
			return fmt.Errorf("%s has %d bytes, the limit is %d", m.path, m.blob.Size, most)
		case seen[m.path]:
			return fmt.Errorf("%s is listed twice", m.path)
		}
		seen[m.path] = true
	}
	sorted := Index{Cells: slices.Clone(x.Cells), Blobs: slices.Clone(x.Blobs), Results: slices.Clone(x.Results)}
	sorted.sort()
	if !slices.Equal(sorted.Cells, x.Cells) || !slices.Equal(sorted.Blobs, x.Blobs) || !slices.Equal(sorted.Results, x.Results) {
		return errors.New("its members are not sorted")
	}
	return nil
}
