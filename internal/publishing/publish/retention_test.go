package publish

import (
	"slices"
	"testing"
	"time"

	"builder/internal/publishing/index"
)

func TestRetention(t *testing.T) {
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	wheel := func(version, rocm string, age int, channels ...string) index.Record {
		return index.Record{
			Recipe: "tool", Cell: "tool-" + version + "-" + rocm, Key: version + rocm, Axes: map[string]string{"version": version, "rocm": rocm},
			Channels: channels, Published: now.AddDate(0, 0, -age),
		}
	}
	tagged := wheel("6", "6.1", 100, "candidate")
	tagged.Tags = []string{"prod"}
	undated := wheel("7", "6.1", 0, "candidate")
	undated.Published = time.Time{}
	all := []index.Record{
		wheel("1", "5.7", 90, "candidate"), wheel("2", "5.7", 60, "candidate"), wheel("3", "5.7", 30, "candidate"), wheel("4", "5.7", 120, "candidate", "stable"),
		wheel("1", "6.1", 90, "candidate"), wheel("5", "6.1", 80, "stable"), tagged, undated,
	}
	for _, c := range []struct {
		name   string
		rule   Retention
		needed map[string]bool
		gone   []string
	}{
		{"age", Retention{Channel: "candidate", Age: 45 * 24 * time.Hour, Keep: 0}, nil, []string{"tool-1-5.7", "tool-1-6.1", "tool-2-5.7"}},
		{"count", Retention{Channel: "candidate", Age: 0, Keep: 1}, nil, []string{"tool-1-5.7", "tool-2-5.7"}},
		{"both", Retention{Channel: "candidate", Age: 75 * 24 * time.Hour, Keep: 1}, nil, []string{"tool-1-5.7"}},
		{"a lock", Retention{Channel: "candidate", Age: 45 * 24 * time.Hour, Keep: 0}, map[string]bool{"16.1": true}, []string{"tool-1-5.7", "tool-2-5.7"}},
		{"named", Retention{Cells: []string{"tool-4-5.7"}}, map[string]bool{"45.7": true}, []string{"tool-4-5.7"}},
		{"the higher channel", Retention{Channel: "stable", Age: 24 * time.Hour, Keep: 0}, nil, []string{"tool-4-5.7", "tool-5-6.1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			decisions := c.rule.Decide(all, c.needed, now)
			if len(decisions) != len(all) {
				t.Fatalf("%d decisions about %d wheels", len(decisions), len(all))
			}
			var gone []string
			for _, d := range decisions {
				if d.Because == "" {
					t.Errorf("%s: nobody says why", d.Cell)
				}
				if d.Remove {
					gone = append(gone, d.Cell)
				}
			}
			if !slices.Equal(gone, c.gone) {
				t.Errorf("gone: %v, want %v", gone, c.gone)
			}
		})
	}
}
