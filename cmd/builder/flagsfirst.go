package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst moves the flags of a verb in front of its operands, because the flag
// parser stops at the first operand. Words after -- are operands. With --help it drops
// the operands: the parser would look for a help topic of their name.
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
		case slices.Contains(cli.HelpFlag.Names(), strings.TrimLeft(word, "-")) && strings.HasPrefix(word, "-"):
			return append(slices.Clone(args[:words]), word)
		case !strings.HasPrefix(word, "-") || word == "-": // standard input
			paths = append(paths, word)
		case takesValue(word, verb.Flags):
			if len(rest) == 0 {
				return args // no other word may become its value
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

// verbOf returns the verb at the start of a command line and the number of words up to
// it.
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

// takesValue reports whether the next word is the value of this flag.
func takesValue(word string, flags []cli.Flag) bool {
	name := strings.TrimLeft(word, "-")
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return d.TakesValue()
		}
	}
	return false
}
