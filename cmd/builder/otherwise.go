package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/base/diag"
	"builder/internal/evidence/attest"
)

// Errors and hints for command lines that are almost right: flags of another verb,
// repeated flags, and a channel in place of a destination.

// flagsElsewhere maps flags that no verb with axes has to hints.
var flagsElsewhere = map[string]string{
	"gpus":    "run the gates on GPUs after the build: builder gate out/CELL --gpus N",
	"all":     "every axis has the value `all`: --AXIS all, such as --rocm all --arch all",
	"tests":   "upstream's own tests run with a build: builder run RECIPE --tests full; nccl-tests run after it: builder gate out/CELL --gpus N --tests DIR",
	"channel": "publish after the run: builder publish out/CELL --to DEST --channel CHANNEL",
	"to":      "publish after the run: builder publish out/CELL --to DEST",
	"gpu":     "the axis is arch: --arch mi300x, --arch h100",
}

// placeError returns the error for the value of a flag. It adds a hint if the value is
// a channel in place of a destination or the reverse: publish and promote use different
// flags for them.
func placeError(flag, word, channelFlag, placeFlag string, err error) error {
	e := diag.Errorf(diag.Usage, "--%s: %w", flag, err)
	switch {
	case flag == placeFlag && slices.Contains(attest.Policies(), word):
		return e.WithHint("%s is a channel: --%s %s; --%s is the place", word, channelFlag, word, placeFlag)
	case flag == channelFlag && strings.Contains(word, ":"):
		return e.WithHint("%s is a place: --%s %s; --%s is the channel", word, placeFlag, word, channelFlag)
	}
	return e
}

// twice rejects a single-valued flag given twice with different values: the parser
// would silently use the last one.
func twice(args []string, verbs []*cli.Command) error {
	verb, words := verbOf(args, verbs)
	if verb == nil || verb.SkipFlagParsing {
		return nil
	}
	said := map[string]string{}
	var errs []error
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
			errs = append(errs, diag.Errorf(diag.Usage, "--%s occurs twice: %q and %q", name, before, value).WithHint("give one of them"))
		}
		said[name] = value
	}
	return errors.Join(errs...)
}

// interrupted returns the error of an interrupted command. It drops the hints and logs of
// what the interruption stopped: they would blame a server or a file. A run gets a hint.
func interrupted(err, cause error, run bool) error {
	all := diag.All(err)
	for _, e := range all {
		stopped := errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, cause) ||
			strings.Contains(e.Error(), context.Canceled.Error()) // of a program or a client
		if !stopped {
			continue
		}
		e.Hint, e.Log = "", nil
		if run {
			e.Hint, run = "give the same command again: it continues after the finished steps", false
		}
	}
	return diag.Joined(all)
}

// single reports whether the named flag has a single value.
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

// helped adds the verb's --help as a hint to a usage error that has neither a hint nor
// a line in a file.
func helped(err error, args []string, verbs []*cli.Command) error {
	all := diag.All(err)
	last := -1
	for i, err := range all {
		if err.Code == diag.Usage && err.Hint == "" && err.Pos.Line == 0 {
			last = i
		}
	}
	if last < 0 {
		return err
	}
	_, words := verbOf(args, verbs)
	all[last].Hint = "see `" + strings.Join(append([]string{"builder"}, args[1:words]...), " ") + " --help`"
	return diag.Joined(all)
}
