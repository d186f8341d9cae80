package audit

import (
	"strings"

	"builder/internal/plan/patch"
)

// overlap describes how two patches of one series edit the same text. It returns "" if
// they do not, so their order makes no difference.
func overlap(a, b patch.Patch) string {
	for _, x := range a.Edits {
		for _, y := range b.Edits {
			if why := clash(x, y); why != "" {
				return why
			}
		}
	}
	return ""
}

func clash(x, y patch.Edit) string {
	if x.Kind == patch.Symlink && y.Kind == patch.Symlink && x.Link == y.Link {
		return "both link " + x.Link
	}
	for file, before := range touched(x) {
		for _, s := range before {
			for _, u := range touched(y)[file] {
				if strings.Contains(s, u) || strings.Contains(u, s) {
					return "both edit " + file + " at " + shared(s, u)
				}
			}
		}
	}
	return ""
}

// touched returns, per file, the texts an edit removes or searches for. An edit at the
// end of a file touches a marker for the end.
func touched(e patch.Edit) map[string][]string {
	switch e.Kind {
	case patch.Replace:
		return map[string][]string{e.File: {e.Search}}
	case patch.Append:
		return map[string][]string{e.File: {"\x00end of file"}}
	case patch.Diff:
		return patch.Removed(e)
	}
	return nil
}

// shared names the place of two texts, one of which contains the other: the longest line
// of the shorter text, as it stands in the longer one.
func shared(s, u string) string {
	if len(u) > len(s) {
		s, u = u, s
	}
	longest := ""
	for line := range strings.Lines(u) {
		if line = strings.TrimSpace(line); len(line) > len(longest) {
			longest = line
		}
	}
	if longest == "\x00end of file" {
		return "its end"
	}
	for line := range strings.Lines(s) {
		if strings.Contains(line, longest) {
			return "\"" + strings.TrimSpace(line) + "\""
		}
	}
	return "\"" + longest + "\""
}
