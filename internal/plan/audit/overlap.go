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
					return "both edit " + file + " at " + first(s)
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

func first(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if line == "\x00end of file" {
		return "its end"
	}
	return "\"" + line + "\""
}
