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

// wanted reports whether the engine has this build and configuration.
func (r record) wanted() bool { return r.Build == buildKey() && r.Config == configKey() }

// readRecord returns the record in a file, or an empty one.
func readRecord(file string) record {
	var rec record
	if text, err := os.ReadFile(file); err == nil {
		_ = json.Unmarshal(text, &rec) // an incomplete record matches no wanted engine
	}
	return rec
}

// writeRecord saves the parameters of the next start, which has this limit of the cache.
func writeRecord(file string, cache int64) error {
	text, err := json.MarshalIndent(record{Build: buildKey(), Config: configKey(), Cache: cache}, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(file, append(text, '\n'))
}
