package progress

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"builder/internal/view/term"
)

// A job is a cell of the run, or another task with steps.
type job struct {
	id, label string
	planned   bool      // a cell of the run: shown until it is done
	begun     time.Time // zero until its first step
	ended     bool
	failed    bool
	step
}

// A step is the latest step of a job, which may have ended.
type step struct {
	name  string
	since time.Time
	over  bool
	last  string    // last line of its log
	shown time.Time // when a plain log last mentioned the step
	said  string    // what the step said then
}

func newJob(id string, planned bool) *job {
	return &job{id: id, label: term.OneLine(id), planned: planned}
}

func (j *job) running() bool { return !j.begun.IsZero() && !j.ended }

// says returns the last line of the running step's log.
func (s step) says() string {
	if s.over {
		return ""
	}
	return s.last
}

// parts matches the parts of a cell's id, each with its separator.
var parts = regexp.MustCompile(`[^-+_]+[-+_]*`)

// label gives the cells of a run short names: the differing parts of their ids. For
// a-1+rocm5.7-x and a-1+rocm6.1-x these are rocm5.7 and rocm6.1.
func label(jobs []*job) {
	var names [][]string
	for _, j := range jobs {
		names = append(names, parts.FindAllString(j.label, -1))
	}
	for same(names, func(name []string) string { return name[0] }) {
		for i := range names {
			names[i] = names[i][1:]
		}
	}
	for same(names, func(name []string) string { return name[len(name)-1] }) {
		for i := range names {
			names[i] = names[i][:len(names[i])-1]
		}
	}
	for i, j := range jobs {
		j.label = cmp.Or(strings.Trim(strings.Join(names[i], ""), "-+_"), j.label)
	}
}

// same reports whether several names have the same part, and none consists of it alone.
func same(names [][]string, part func(name []string) string) bool {
	for _, name := range names {
		if len(name) < 2 || part(name) != part(names[0]) {
			return false
		}
	}
	return len(names) > 1
}

// shorten cuts the middle out of a name wider than width, because the beginning and the
// end identify it best.
func shorten(name string, width int) string {
	over := term.Columns(name) - width
	if over <= 0 {
		return name
	}
	letters := []rune(name)
	keep := max(0, len(letters)-over-1) // assumes one column per rune, as in ids
	tail := (keep + 1) / 2
	return string(letters[:keep-tail]) + "…" + string(letters[len(letters)-tail:])
}
