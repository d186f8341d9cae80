package native

import (
	"encoding/json"
	"os"

	"builder/internal/base/atomicfile"
)

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

// record saves the parameters for the next start.
func (e *Engine) record() error {
	text, err := json.MarshalIndent(record{Build: buildKey(), Config: configKey(), Cache: e.opts.Cache}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(e.path("state.json"), append(text, '\n'))
}
