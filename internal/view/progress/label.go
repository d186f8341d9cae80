package progress

import (
	"strings"

	"builder/internal/view/term"
)

// separators are the characters between the parts of a cell's id.
const separators = "-+_"

// label gives the cells of a run short names: the differing parts of their ids. For
// a-1+rocm5.7-x and a-1+rocm6.1-x these are rocm5.7 and rocm6.1.
func label(jobs []*job) {
	if len(jobs) < 2 {
		return
	}
	head, tail := jobs[0].label, jobs[0].label
	for _, j := range jobs[1:] {
		head, tail = commonHead(head, j.label), commonTail(tail, j.label)
	}
	head = head[:strings.LastIndexAny(head, separators)+1]
	if i := strings.IndexAny(tail, separators); i >= 0 {
		tail = tail[i:]
	} else {
		tail = ""
	}
	for _, j := range jobs {
		if len(j.label) <= len(head)+len(tail) {
			return // one label is part of another: whole ids are clearer
		}
	}
	for _, j := range jobs {
		j.label = j.label[len(head) : len(j.label)-len(tail)]
	}
}

func commonHead(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func commonTail(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return a[len(a)-n:]
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
