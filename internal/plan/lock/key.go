package lock

import (
	"encoding/json"
	"fmt"

	"builder/internal/base/regular"
)

// EntrySchema is the version of the format of entries. A new version changes all keys.
// Since 2, expect holds the settings of each gate below its name.
const EntrySchema = 2

// Canonical returns the entry as JSON with fields in fixed order and sorted map keys,
// without floats, times and host paths.
func (e Entry) Canonical() []byte { return []byte(encoded(e)) }

// Key returns the sha256 of the entry's canonical JSON.
func (e Entry) Key() string { return regular.Sum(e.Canonical()) }

// Key returns the sha256 of a base image with its Python packages. It is expensive to
// make, and cells share it.
func (i Image) Key() string { return regular.Sum([]byte(encoded(i))) }

// encoded returns the canonical JSON of an entry or a part of a lock: its fields in fixed
// order, with sorted keys of maps. Equal ones have the same.
func encoded(x any) string {
	data, err := json.Marshal(x)
	if err != nil {
		panic(fmt.Sprintf("lock: %T is not JSON: %v", x, err)) // strings, integers, and lists and maps of them only
	}
	return string(data)
}
