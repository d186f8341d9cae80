// Package carry takes what cells need from a machine with a network to one
// without: the files of the store that their entries name, and the results of
// those that have passed, as one tar file or one directory.
//
// The first member is an index that names every other one with its size and
// sha256. What comes from elsewhere is believed in nothing but these: a member
// that the index does not name, that comes in another order or that is another
// kind of thing than a file ends the reading, and no byte enters a store before
// its digest was found right.
//
// Equal content is an equal file: members are sorted, and have no time, owner or
// mode of the machine that wrote them.
//
// What is carried others choose, and whether a result is to be trusted they decide:
// here a record is bytes.
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

	"builder/internal/base/regular"
	"builder/internal/input/store"
)

// schema is the number of the format.
const schema = 1

const (
	indexName = "index.json"
	maxIndex  = 64 << 20 // of a million files
	maxRecord = 16 << 20 // an entry, or the record of a result
	maxBlob   = 64 << 30
)

// An Index names everything that is carried.
type Index struct {
	Schema  int    `json:"schema"`
	Builder string `json:"builder"` // the version that wrote it, for messages
	Cells   []Cell `json:"cells"`
	Blobs   []Blob `json:"blobs"`
	Results []Blob `json:"results"` // named by the keys of their cells
}

// A Cell is one whose entry is carried: a file whose sha256 is its key.
type Cell struct {
	ID   string `json:"id"`
	Key  string `json:"key"`
	Size int64  `json:"size"`
}

// A Blob is a file of the store, or a record.
type Blob struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// member is a file as the archive holds it.
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

// members lists them in their order: results stand behind what they are made of.
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

// Bytes is the size of all members.
func (x Index) Bytes() int64 {
	var n int64
	for _, m := range x.members() {
		n += m.blob.Size
	}
	return n
}

// sort puts an index into the one order that it can have.
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
		panic(fmt.Sprintf("carry: an index is not JSON: %v", err)) // strings and integers only
	}
	return text.Bytes()
}

// decode reads an index and refuses what this package would not have written.
func decode(r io.Reader) (Index, error) {
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
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&x); err != nil {
		return Index{}, err
	}
	return x, x.fault()
}

var (
	digest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	word   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!~:%=@-]{0,254}$`)
)

// fault says what is wrong with an index: what it names, how large that is, and
// that it names nothing twice.
func (x Index) fault() error {
	seen := map[string]bool{}
	for _, m := range x.members() {
		most := int64(maxRecord)
		if m.kind == blob {
			most = maxBlob
		}
		switch {
		case !digest.MatchString(m.blob.SHA256) || m.kind == result && !digest.MatchString(m.blob.Name):
			return fmt.Errorf("%q: a digest or a key is none", m.path)
		case !word.MatchString(m.blob.Name):
			return fmt.Errorf("%q is not a name", m.blob.Name)
		case m.blob.Size < 0 || m.blob.Size > most:
			return fmt.Errorf("%s has %d bytes, at most %d can be", m.path, m.blob.Size, most)
		case seen[m.path]:
			return fmt.Errorf("%s is named twice", m.path)
		}
		seen[m.path] = true
	}
	sorted := Index{Cells: slices.Clone(x.Cells), Blobs: slices.Clone(x.Blobs), Results: slices.Clone(x.Results)}
	sorted.sort()
	if !slices.Equal(sorted.Cells, x.Cells) || !slices.Equal(sorted.Blobs, x.Blobs) || !slices.Equal(sorted.Results, x.Results) {
		return errors.New("it is not sorted")
	}
	return nil
}
