package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app"
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
	return app.Joined(all)
}
