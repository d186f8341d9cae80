package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
)

// field returns the value after a name and a colon, as in /proc/self/status.
func field(text, name string) (string, bool) {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}

// because formats a read error with the path named once.
func because(err error) string {
	if e, is := errors.AsType[*fs.PathError](err); is {
		return fmt.Sprintf("/%s: %v", strings.TrimPrefix(e.Path, "/"), e.Err)
	}
	return err.Error()
}

// silence explains why a program gave no usable output.
func silence(name string, err error) string {
	if errors.Is(err, exec.ErrNotFound) {
		return name + " is not in PATH"
	}
	return fmt.Sprintf("%s: %v", name, err)
}

// tally counts each name, in order of first occurrence.
func tally(names []string) string {
	var order []string
	number := map[string]int{}
	for _, name := range names {
		if number[name]++; number[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%d x %s", number[name], name)
	}
	return strings.Join(order, ", ")
}
