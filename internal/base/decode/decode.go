// Package decode decodes hand-written YAML into structs, strictly. It reports all
// errors at once, each with file, line and column. Messages name the keys of the file,
// never a Go type.
//
// Nodes are checked against the type before decoding, so a value is decoded completely
// or left unchanged. A version that YAML would parse as a number is an error, because
// as a number 2.10 is 2.1. The tags from which the schema of an editor is made hold here
// too: a key that the JSON of its struct always has is required, enum lists the possible
// values, and minItems=1 refuses an empty list.
//
// This package does not know the meaning of values. The caller validates them, and adds
// what it finds to the faults of the [File].
package decode

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"builder/internal/base/diag"
	"builder/internal/base/regular"
)

// maxBytes bounds the size of a file. The largest recipe is a hundredth of it.
const maxBytes = 1 << 20

// maxDepth bounds the nesting of values. Without it, the paths of an [Index] would grow
// quadratically for a file of brackets.
const maxDepth = 32

// readFile reads a file of fsys. Its path in error messages begins with dir. Errors never
// contain the content.
func readFile(fsys fs.FS, dir, file string) ([]byte, error) {
	pos := diag.Pos{File: path.Join(dir, file)}
	f, err := fsys.Open(file)
	if err != nil {
		return nil, diag.At(pos, "%w", plainly(err))
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		return nil, diag.At(pos, "not a regular file")
	}
	data, err := regular.All(f, maxBytes)
	if err != nil {
		return nil, diag.At(pos, "%w", plainly(err))
	}
	return data, nil
}

// plainly removes the path from an error, because the position has it already.
func plainly(err error) error {
	if problem, ok := errors.AsType[*fs.PathError](err); ok {
		return problem.Err
	}
	return err
}

// YAML decodes one document into the struct to which into points. name is the file in
// error messages. On an error, into is unchanged. The file has the faults that left a
// complete value, such as a missing key: the caller returns them with its own.
func YAML(name string, data []byte, into any) (*File, error) { return OpenYAML(name, data, into, nil) }

// OpenYAML is like YAML for a struct with an inline map, whose keys other packages
// define: inline holds the type of the value of each key.
func OpenYAML(name string, data []byte, into any, inline map[string]reflect.Type) (*File, error) {
	root, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	f := &File{Index: Index{name, map[string]diag.Pos{}}}
	if f.faults, err = fill(name, root, into, inline); err != nil {
		return nil, err
	}
	f.add(root, "")
	return f, nil
}

// Folder parses every *.yaml of fsys, in the order of their names. The names of files
// begin with dir. It returns the errors of all files together.
func Folder[T any](fsys fs.FS, dir string, parse func(name string, data []byte) (T, error)) ([]T, error) {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	var all []T
	var errs []error
	for _, file := range files {
		var one T
		data, err := readFile(fsys, dir, file)
		if err == nil {
			one, err = parse(path.Join(dir, file), data)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, one)
	}
	return all, errors.Join(errs...)
}

// fill checks a node against the type to which into points, and decodes it. It returns
// the faults against tags.
func fill(name string, root *yaml.Node, into any, inline map[string]reflect.Type) (faults []error, _ error) {
	target := reflect.ValueOf(into)
	c := checker{file: name, inline: inline}
	c.check(root, target.Type().Elem(), "")
	if err := errors.Join(c.errs...); err != nil {
		return nil, err
	}
	fresh := reflect.New(target.Type().Elem())
	if err := root.Load(fresh.Interface(), yaml.WithKnownFields()); err != nil {
		return nil, diag.At(diag.Pos{File: name}, "reading YAML: %w", err)
	}
	target.Elem().Set(fresh.Elem())
	return c.faults, nil
}

// parse returns the root node of the one document in data.
func parse(name string, data []byte) (*yaml.Node, error) {
	if len(data) > maxBytes {
		return nil, diag.At(diag.Pos{File: name}, "larger than %d bytes", maxBytes)
	}
	var documents []yaml.Node
	if err := yaml.Load(data, &documents, yaml.WithAllDocuments()); err != nil {
		return nil, syntaxFault(name, data, err)
	}
	switch {
	case len(documents) == 0 || len(documents[0].Content) == 0 || documents[0].Content[0].ShortTag() == "!!null":
		return nil, diag.At(diag.Pos{File: name}, "the file is empty").WithHint("write its keys, or remove the file")
	case len(documents) > 1:
		return nil, diag.At(at(name, &documents[1]), "the file has a second document: write one document per file")
	}
	root := documents[0].Content[0]
	if deep := tooDeep(root, maxDepth); deep != nil {
		return nil, diag.At(at(name, deep), "nested more than %d deep", maxDepth)
	}
	return root, nil
}

// tooDeep returns a node nested more than depth levels deep, or nil.
func tooDeep(n *yaml.Node, depth int) *yaml.Node {
	if depth < 0 {
		return n
	}
	for _, child := range n.Content {
		if deep := tooDeep(child, depth-1); deep != nil {
			return deep
		}
	}
	return nil
}

// syntaxFault returns the library's message with its position.
func syntaxFault(name string, data []byte, err error) error {
	for i, line := range bytes.Split(data, []byte("\n")) { // the library does not name the line
		if !utf8.Valid(line) {
			return diag.At(diag.Pos{File: name, Line: i + 1}, "not valid YAML: the line is not UTF-8").WithHint("save the file as UTF-8")
		}
	}
	var problem *yaml.LoadError
	if !errors.As(err, &problem) {
		return diag.At(diag.Pos{File: name}, "not valid YAML: %w", err)
	}
	text := problem.Message
	if strings.HasPrefix(text, "unknown anchor") { // the library quotes its name, which may be a password
		text = "an alias refers to nothing"
	}
	if problem.ContextMsg != "" {
		text += " " + problem.ContextMsg
		if line := problem.ContextMark.Line; line > 0 && line != problem.Mark.Line {
			text += fmt.Sprintf(", which begins in line %d", line)
		}
	}
	pos := diag.Pos{File: name, Line: problem.Mark.Line, Column: problem.Mark.Column}
	return diag.At(pos, "not valid YAML: %s", text).
		WithHint("the mistake may be above this line: look for a missing ], } or quote, and for the indentation")
}

func at(file string, n *yaml.Node) diag.Pos {
	return diag.Pos{File: file, Line: n.Line, Column: n.Column}
}
