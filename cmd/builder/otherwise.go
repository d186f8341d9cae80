package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
)

// What is said otherwise here than a user said it: flags that another verb has, flags
// that are there twice, and files that belong to somebody else.

// alike are flags that mean much the same, each the name that some verb has.
var alike = [][]string{
	{"to", "at", "from", "dest", "destination", "registry", "index"},
	{"channel", "policy", "to"},
	{"step", "at"},
	{"out", "output", "to", "dir"},
	{"jobs", "parallel"},
	{"engine", "host"},
	{"recipes", "site"},
	{"trust", "pubkey"},
	{"format", "output"},
	{"because", "reason"},
}

// flagsElsewhere are flags that no verb with axes has, and what to do instead.
var flagsElsewhere = map[string]string{
	"gpus":    "gates on GPUs are asked of what was built: builder gate out/CELL --gpus N",
	"all":     "`all` is a value of each axis: --AXIS all, such as --rocm all --arch all",
	"tests":   "gates on GPUs are asked of what was built: builder gate out/CELL --gpus N --tests DIR",
	"channel": "publishing comes after the run: builder publish out/CELL --to DEST --channel CHANNEL",
	"to":      "publishing comes after the run: builder publish out/CELL --to DEST",
	"force":   "nothing is built again that is known: --rebuild builds a second time and compares",
	"dry-run": "`builder plan` says what a run would do",
	"gpu":     "the axis is called arch: --arch mi300x, --arch h100",
}

// flagHint says which flag may have been meant by one that a command does not have.
func flagHint(name string, known []string) string {
	for _, group := range alike {
		if !slices.Contains(group, name) {
			continue
		}
		for _, other := range group {
			if other != name && slices.Contains(known, other) {
				return fmt.Sprintf("did you mean --%s? known: %s", other, strings.Join(known, ", "))
			}
		}
	}
	return diag.DidYouMean(name, known)
}

// placeFault is the error about the word of a flag, with a hint where a channel stands
// for a destination or a destination for a channel: publish and promote call them by
// other flags.
func placeFault(flag, word, channelFlag, placeFlag string, err error) error {
	fault := diag.Errorf(diag.Usage, "--%s: %w", flag, err)
	switch {
	case flag == placeFlag && slices.Contains(attest.Policies(), word):
		return fault.WithHint("%s is a channel: --%s %s; --%s is the place", word, channelFlag, word, placeFlag)
	case flag == channelFlag && strings.Contains(word, ":"):
		return fault.WithHint("%s is a place: --%s %s; --%s is the channel", word, placeFlag, word, channelFlag)
	}
	return fault
}

// twice refuses a flag that is there twice with different values and can have one: the
// parser takes the last, and nobody would be told.
func twice(args []string, verbs []*cli.Command) error {
	verb, words := verbOf(args, verbs)
	if verb == nil || verb.SkipFlagParsing {
		return nil
	}
	said := map[string]string{}
	var faults []error
	for rest := args[words:]; len(rest) > 0 && rest[0] != "--"; rest = rest[1:] {
		name, value, assigned := strings.Cut(strings.TrimLeft(rest[0], "-"), "=")
		if !strings.HasPrefix(rest[0], "-") || !single(name, verb.Flags) {
			if takesValue(rest[0], verb.Flags) && len(rest) > 1 {
				rest = rest[1:]
			}
			continue
		}
		if !assigned && len(rest) > 1 {
			value, rest = rest[1], rest[1:]
		}
		if before, again := said[name]; again && before != value {
			faults = append(faults, diag.Errorf(diag.Usage, "--%s is given twice: %q and %q", name, before, value).WithHint("give one of them"))
		}
		said[name] = value
	}
	return errors.Join(faults...)
}

// single reports whether a flag of this name has one value.
func single(name string, flags []cli.Flag) bool {
	for _, f := range flags {
		if !slices.Contains(f.Names(), name) {
			continue
		}
		switch f.(type) {
		case *cli.StringFlag, *cli.IntFlag, *cli.DurationFlag, *cli.Float64Flag:
			return true
		}
	}
	return false
}

// denied gives an error about a file that this user may not read or write the class of a
// usage error, and says whose it is and what names another place.
func denied(err error) error {
	all := diag.All(err)
	changed := false
	for _, fault := range all {
		path, readOnly := refusedPath(fault.Err)
		if path == "" || fault.Hint != "" {
			continue
		}
		changed = true
		if fault.Code == diag.Unexpected {
			fault.Code = diag.Usage
		}
		fault.Hint = fmt.Sprintf("%s: name a place that you can write to (BUILDER_HOME for the state directory, --out for results)", ownerOf(path))
		if readOnly {
			fault.Hint = "the file system is mounted read-only: name another place (BUILDER_HOME for the state directory, --out for results)"
		}
	}
	if !changed {
		return err
	}
	return joined(all)
}

// helped gives a usage error that has no hint, and names no line of a file where to
// mend it, the help of the verb.
func helped(err error, args []string, verbs []*cli.Command) error {
	all := diag.All(err)
	last := -1
	for i, fault := range all {
		if fault.Code == diag.Usage && fault.Hint == "" && fault.Pos.Line == 0 {
			last = i
		}
	}
	if last < 0 {
		return err
	}
	_, words := verbOf(args, verbs)
	all[last].Hint = "see `" + strings.Join(append([]string{"builder"}, args[1:words]...), " ") + " --help`"
	return joined(all)
}

func joined(all []*diag.Error) error {
	faults := make([]error, len(all))
	for i, fault := range all {
		faults[i] = fault
	}
	return errors.Join(faults...)
}

// refusedPath is the path that the system refused to this user, "" where it did not.
func refusedPath(err error) (path string, readOnly bool) {
	fault, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return "", false
	}
	readOnly = errors.Is(fault.Err, syscall.EROFS)
	if readOnly || errors.Is(fault.Err, fs.ErrPermission) || fault.Op == "mkdir" {
		return fault.Path, readOnly
	}
	return "", false
}

// ownerOf says whom a path, or the first directory above it that is there, belongs to.
func ownerOf(path string) string {
	for ; path != "" && path != "/" && path != "."; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		if of, ok := info.Sys().(*syscall.Stat_t); ok && int(of.Uid) != os.Geteuid() {
			return fmt.Sprintf("%s belongs to user %d, and this is user %d", path, of.Uid, os.Geteuid())
		}
		return "nothing can be written below " + path
	}
	return "nothing can be written there"
}
