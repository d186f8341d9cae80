package app

import (
	"encoding/json"
	"testing"
)

func TestConcerns(t *testing.T) {
	var e osvEntry
	err := json.Unmarshal([]byte(`{"id": "X", "affected": [{"package": {"ecosystem": "PyPI", "name": "a_b"}, "versions": ["9.9"], "ranges": [
		{"type": "GIT", "events": [{"introduced": "0"}]},
		{"type": "ECOSYSTEM", "events": [{"introduced": "1.0"}, {"fixed": "1.2"}, {"introduced": "2.0"}, {"last_affected": "2.1"}]}]}]}`), &e)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		project, version, fixed string
		concerned               bool
	}{
		{"A-B", "1.0", "1.2", true}, {"a.b", "1.1.9", "1.2", true}, {"a-b", "0.9", "", false}, {"a-b", "1.2", "", false},
		{"a-b", "2.0", "", true}, {"a-b", "2.1", "", true}, {"a-b", "2.2", "", false}, {"a-b", "9.9", "", true},
		{"a-c", "1.0", "", false}, {"a-b", "no version", "", false},
	} {
		if fixed, ok := e.concerns(c.project, c.version); ok != c.concerned || fixed != c.fixed {
			t.Errorf("%s %s: %v, fixed in %q", c.project, c.version, ok, fixed)
		}
	}
}
