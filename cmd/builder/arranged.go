package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arranged moves the flags of a command line between its verbs and its operands, because
// the flag parser stops at the first operand. Flags before the first verb stay there.
// Words after -- are operands. With --help it drops the operands: the parser would look
// for a help topic of their name.
func arranged(args []string, tool *cli.App) []string {
	verb := &cli.Command{Flags: tool.Flags, Subcommands: tool.Commands}
	var global, path, flags, operands []string
	for rest := args[1:]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		below := verb.Command(word)
		switch {
		case word == "--":
			operands, rest = append(operands, rest...), nil
		case word == "--help" || word == "-h":
			if needsName(verb) && len(operands) > 0 {
				return args // no such verb or recipe
			}
			return slices.Concat(args[:1], path, []string{word})
		case strings.HasPrefix(word, "-") && word != "-": // - is the standard input
			flags = append(flags, word)
			if !takesValue(verb, word) {
				continue
			}
			if len(rest) == 0 {
				return args // no other word may become its value
			}
			flags, rest = append(flags, rest[0]), rest[1:]
		case below != nil && len(operands) == 0:
			if len(path) == 0 {
				global, flags = flags, nil
			}
			path, verb = append(path, word), below
		default:
			operands = append(operands, word)
		}
	}
	verbs := slices.Concat(args[:1], global, path)
	switch {
	case len(operands) == 0:
		return append(verbs, flags...)
	case needsName(verb):
		return args // an operand is an unknown name: the error, and not its flags
	}
	return slices.Concat(verbs, flags, []string{"--"}, operands)
}

// needsName reports whether a verb has only names below it: of verbs, recipes or
// profiles. All but publish have, which also takes operands.
func needsName(verb *cli.Command) bool {
	return len(verb.Subcommands) > 0 && (verb.ArgsUsage == "" || takesNames(verb))
}

// takesNames reports whether the words below a verb are names of recipes or profiles.
func takesNames(verb *cli.Command) bool {
	return strings.Contains(verb.ArgsUsage, "RECIPE") || strings.Contains(verb.ArgsUsage, "PROFILE")
}

// takesValue reports whether the next word is the value of this flag of the verb, or of a
// verb or recipe below it.
func takesValue(verb *cli.Command, word string) bool {
	if f := flagNamed(verb.Flags, strings.TrimLeft(word, "-")); f != nil {
		return f.TakesValue()
	}
	return slices.ContainsFunc(verb.Subcommands, func(below *cli.Command) bool { return takesValue(below, word) })
}

// flagNamed returns the flag with this name, or nil.
func flagNamed(flags []cli.Flag, name string) cli.DocGenerationFlag {
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && slices.Contains(f.Names(), name) {
			return d
		}
	}
	return nil
}

// flagNames returns all names of flags.
func flagNames(flags []cli.Flag) []string {
	var names []string
	for _, f := range flags {
		names = append(names, f.Names()...)
	}
	return names
}
