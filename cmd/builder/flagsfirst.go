package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst puts the flags of a verb that takes paths in front of them, whatever
// the order in which they were typed: the parser stops at the first path. What
// follows -- is a path.
func flagsFirst(args []string, verbs []*cli.Command) []string {
	verb, words := verbOf(args, verbs)
	if verb == nil || verb.ArgsUsage == "" || len(verb.Subcommands) > 0 && takesNames(verb) || verb.SkipFlagParsing || verb.Name == helpVerb {
		return args
	}
	var first, paths []string
	for rest := args[words:]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--":
			paths, rest = append(paths, rest...), nil
		case !strings.HasPrefix(word, "-") || word == "-": // standard input
			paths = append(paths, word)
		case takesValue(word, verb.Flags):
			if len(rest) == 0 {
				return args // nothing that stands behind it now may become its value
			}
			first, rest = append(first, word, rest[0]), rest[1:]
		default:
			first = append(first, word)
		}
	}
	if len(paths) > 0 {
		paths = append([]string{"--"}, paths...)
	}
	return slices.Concat(args[:words], first, paths)
}

// verbOf returns the verb that a command line begins with, and how many words
// lead to it.
func verbOf(args []string, verbs []*cli.Command) (verb *cli.Command, words int) {
	for words = 1; words < len(args); words++ {
		i := slices.IndexFunc(verbs, func(c *cli.Command) bool { return c.HasName(args[words]) })
		if i < 0 {
			break
		}
		verb, verbs = verbs[i], verbs[i].Subcommands
	}
	return verb, words
}

// takesValue reports whether the next word belongs to this flag.
func takesValue(word string, flags []cli.Flag) bool {
	name := strings.TrimLeft(word, "-")
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return d.TakesValue()
		}
	}
	return false
}
