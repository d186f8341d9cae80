package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// flagsFirst puts the flags of a verb that takes paths in front of them, whatever
// the order in which they were typed: the parser stops at the first path. What
// follows -- is a path.
func flagsFirst(args []string, verb string, flags []cli.Flag) []string {
	words := strings.Fields("builder " + verb)
	if len(args) < len(words) || !slices.Equal(args[1:len(words)], words[1:]) {
		return args
	}
	var first, paths []string
	for rest := args[len(words):]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		switch {
		case word == "--":
			paths, rest = append(paths, rest...), nil
		case !strings.HasPrefix(word, "-"):
			paths = append(paths, word)
		case takesValue(word, flags):
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
	return slices.Concat(args[:len(words)], first, paths)
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
