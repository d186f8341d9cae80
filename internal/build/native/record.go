package native

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"builder/internal/base/atomicfile"
)

// shared is the only directory common to all homes. It holds only links: short paths of
// long socket names.
const shared = "/run/builder"

// A record is the set of parameters an engine was started with.
type record struct {
	Build  string `json:"build"`
	Config string `json:"config"`
	Cache  int64  `json:"cache"` // see [Options]
}

// readRecord returns the last record, or an empty one.
func (e *Engine) readRecord() record {
	var rec record
	if text, err := os.ReadFile(e.path("state.json")); err == nil {
		_ = json.Unmarshal(text, &rec) // an incomplete record matches no wanted engine
	}
	return rec
}

// record saves the parameters for the next start, and links the socket if its path is
// long.
func (e *Engine) record() error {
	if socket := e.path("mask", e.inner()); e.outer() != socket {
		if err := os.MkdirAll(shared, 0o755); err != nil {
			return err
		}
		if !claim(shared, e.id(), filepath.Dir(socket)) {
			return fmt.Errorf("%s belongs to another home", filepath.Join(shared, e.id()))
		}
	}
	text, err := json.MarshalIndent(record{Build: buildKey(), Config: configKey(), Cache: e.opts.Cache}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(e.path("state.json"), append(text, '\n'))
}

// claim creates the link dir/name to owner, unless another owner has it. The claim of a
// deleted owner is void.
func claim(dir, name, owner string) bool {
	link := filepath.Join(dir, name)
	if os.Symlink(owner, link) == nil {
		return true
	}
	holder, err := os.Readlink(link)
	if err != nil || holder == owner {
		return err == nil
	}
	return !exists(holder) && os.Remove(link) == nil && os.Symlink(owner, link) == nil
}
