package manual

import (
	"fmt"
	"strings"

	"builder/internal/app/syntax"
)

// Reference returns the Markdown page of a verb and its subverbs. words is the path to
// the verb and starts with the tool.
func Reference(words []string, v syntax.Verb) string {
	var p markdown
	p.verb("#", words, v)
	return p.String()
}

// markdown is a page under construction.
type markdown struct{ strings.Builder }

func (p *markdown) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// verb writes a chapter. level is the prefix of its heading.
func (p *markdown) verb(level string, words []string, v syntax.Verb) {
	p.line("%s %s\n\n%s.", level, strings.Join(words, " "), sentence(v.Summary))
	p.line("\n```text\n%s\n```", usage(words, v))
	for _, b := range blocksOf(v.About) {
		p.block(b)
	}
	p.recipes(v)
	p.flags(v.Options())
	if kindOf(v) != recipeKind {
		p.axes(recipesOf(v))
	}
	p.examples(v.Examples)
	p.exits(v.Exits)
	for _, below := range v.Own() {
		p.line("")
		p.verb(level+"#", append(words[:len(words):len(words)], below.Name), below)
	}
}

func (p *markdown) block(b block) {
	p.line("")
	if b.literal {
		p.line("```text\n%s\n```", strings.Join(b.lines, "\n"))
		return
	}
	for _, line := range b.lines {
		p.line("%s", inert(line))
	}
}

// recipeKind is the name of the operand of verbs that take a recipe. Many verbs share
// the axes of recipes, so the first page of the reference lists them once.
const recipeKind = "RECIPE"

// kindOf returns the name of a verb's first operand, such as RECIPE.
func kindOf(v syntax.Verb) string {
	kind, _, _ := strings.Cut(v.Operands, " ")
	return strings.Trim(kind, "[]")
}

func (p *markdown) recipes(v syntax.Verb) {
	var names []string
	for _, r := range recipesOf(v) {
		names = append(names, "`"+r.Name+"`")
	}
	switch {
	case len(names) == 0:
	case kindOf(v) == recipeKind:
		p.line("\nRECIPE is one of %s. Put flags and its [axes](README.md#axes) after it.", strings.Join(names, ", "))
	default:
		p.line("\n%s is one of %s. Put flags and its axes after it.", kindOf(v), strings.Join(names, ", "))
	}
}

// axes writes the axes of each recipe or profile.
func (p *markdown) axes(recipes []syntax.Verb) {
	for _, r := range recipes {
		p.line("\nAxes of %s:\n\n%s", code(r.Name), strings.TrimSuffix(Axes(r), "\n"))
	}
}

func (p *markdown) flags(flags []syntax.Flag) {
	if len(flags) == 0 {
		return
	}
	p.line("\n| flag | does | default | variable |\n| --- | --- | --- | --- |")
	for _, f := range flags {
		text := f.About
		if f.Repeats && !strings.Contains(text, "repeatable") {
			text += "; repeatable"
		}
		p.line("| %s | %s | %s | %s |", code(f.Spelling()), cell(text), code(f.Default), code(f.Variable))
	}
}

func (p *markdown) examples(examples []syntax.Example) {
	if len(examples) == 0 {
		return
	}
	p.line("\nExamples:\n\n```text")
	for i, e := range examples {
		if i > 0 {
			p.line("")
		}
		p.line("# %s\n%s", e.Does, e.Line)
	}
	p.line("```")
}

func (p *markdown) exits(exits []syntax.Exit) {
	var codes []string
	for _, e := range exits {
		codes = append(codes, fmt.Sprint(e.Code))
	}
	p.line("\n[Exit codes](../exit-codes.md): %s.", strings.Join(codes, ", "))
}

// Axes returns the table of the axes of a recipe.
func Axes(recipe syntax.Verb) string {
	var p markdown
	p.line("| axis | is | values, most preferred first |\n| --- | --- | --- |")
	for _, f := range axesOf(recipe) {
		what, _, _ := strings.Cut(f.About, ": VALUE of ")
		var values []string
		for _, value := range f.Takes.Words {
			if value != "all" { // every axis accepts it
				values = append(values, code(value))
			}
		}
		p.line("| %s | %s | %s |", code(syntax.Dashed(f.Names[0])), cell(what), strings.Join(values, " "))
	}
	return p.String()
}

// Code returns text as code in a table cell.
func Code(text string) string { return code(text) }

// Cell returns text in a table cell.
func Cell(text string) string { return cell(text) }

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

func cell(text string) string { return strings.ReplaceAll(inert(text), "|", `\|`) }

// inert escapes markup in text. Text between backticks needs no escape.
func inert(text string) string {
	parts := strings.Split(text, "`")
	for i := 0; i < len(parts); i += 2 {
		parts[i] = strings.NewReplacer("<", "&lt;", "*", `\*`, "[", `\[`).Replace(parts[i])
	}
	return strings.Join(parts, "`")
}

func sentence(summary string) string {
	return strings.ToUpper(summary[:1]) + summary[1:]
}
