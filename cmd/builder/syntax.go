package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"builder/internal/app/manual"
	"builder/internal/app/syntax"
	"builder/internal/base/diag"
)

// syntaxOf returns the command line as data, for help, completion, man pages and the
// reference.
func syntaxOf(app *cli.App) syntax.Verb {
	tool := syntax.Verb{Name: app.Name, Summary: app.Usage, Operands: "COMMAND", About: manual.About}
	tool.Flags = flagsOf(app.Name, app.Flags)
	for _, command := range app.Commands {
		if !command.Hidden {
			tool.Verbs = append(tool.Verbs, verbFrom(nil, command))
		}
	}
	described(&tool, "")
	return tool
}

// verbFrom converts a command. above is the path to it.
func verbFrom(above []string, c *cli.Command) syntax.Verb {
	words := append(slices.Clone(above), c.Name)
	path := strings.Join(words, " ")
	v := syntax.Verb{
		Name: c.Name, Group: c.Category, Summary: c.Usage, Operands: c.ArgsUsage, About: c.Description,
		Flags: flagsOf(path, c.Flags), Takes: operands[path],
	}
	described(&v, path)
	for _, below := range c.Subcommands {
		child := verbFrom(words, below)
		child.Recipe = takesNames(c)
		v.Verbs = append(v.Verbs, child)
	}
	return v
}

// takesNames reports whether the words below a verb are names of recipes or profiles.
func takesNames(c *cli.Command) bool {
	return strings.Contains(c.ArgsUsage, "RECIPE") || strings.Contains(c.ArgsUsage, "PROFILE")
}

// described adds the texts of package manual to a verb.
func described(v *syntax.Verb, path string) {
	d := manual.Descriptions[path]
	v.Examples = d.Examples
	for _, code := range slices.Concat([]diag.Code{diag.OK, diag.Unexpected}, d.Exits, []diag.Code{diag.Interrupted}) {
		v.Exits = append(v.Exits, syntax.Exit{Code: int(code), Means: manual.ExitMeanings[code]})
	}
}

func flagsOf(path string, flags []cli.Flag) []syntax.Flag {
	var all []syntax.Flag
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && f.Names()[0] != "help" {
			all = append(all, flagOf(path, d))
		}
	}
	return all
}

func flagOf(path string, d cli.DocGenerationFlag) syntax.Flag {
	f := syntax.Flag{Names: d.Names(), About: d.GetUsage()}
	value := ""
	if before, rest, ok := strings.Cut(f.About, "`"); ok {
		name, after, _ := strings.Cut(rest, "`")
		value, f.About = name, before+name+after
	}
	if variables := d.GetEnvVars(); len(variables) > 0 {
		f.Variable = variables[0]
	}
	if !d.TakesValue() {
		return f
	}
	f.Value, f.Default = value, strings.Trim(d.GetDefaultText(), `"`)
	if f.Default == "0" || f.Default == "0s" {
		f.Default = "" // zero is not shown; the text explains it
	}
	if f.Value == "" {
		f.Value = "VALUE"
	}
	f.Takes = taken(path, f.Names[0], f.Value)
	switch d := d.(type) {
	case cli.DocGenerationSliceFlag:
		f.Repeats, f.List = d.IsSliceFlag(), d.IsSliceFlag()
	case *cli.GenericFlag:
		f.Repeats = true
		if axis, ok := d.Value.(*axisValue); ok {
			f.Axis, f.List, f.Takes.Words = true, true, append(slices.Clone(axis.known), "all")
		}
	}
	return f
}

// taken returns the possible values of a flag: known values, or values from its
// placeholder. Lower-case words of a placeholder are values: `images|uv`.
func taken(path, flag, placeholder string) syntax.Takes {
	for words := strings.Fields(path); ; words = words[:len(words)-1] {
		if known, ok := flagWords[strings.Join(append(slices.Clone(words), "--"+flag), " ")]; ok {
			return syntax.Takes{Words: known}
		}
		if len(words) == 0 {
			break
		}
	}
	if placeholder == "DIR" {
		return syntax.Takes{Directories: true}
	}
	var t syntax.Takes
	for word := range strings.SplitSeq(placeholder, "|") {
		switch {
		case slices.Contains([]string{"FILE", "DIR", "WHEEL", "LIB", "LOCK"}, word):
			t.Files = true
		case word == strings.ToLower(word) && !strings.Contains(word, "/"):
			t.Words = append(t.Words, word)
		}
	}
	return t
}
