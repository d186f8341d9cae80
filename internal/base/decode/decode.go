// Package decode decodes hand-written YAML into structs, strictly. It reports all
// errors at once, each with file, line and column. Messages name the keys of the file,
// never a Go type.
//
// Nodes are checked against the type before decoding, so a value is decoded completely
// or left unchanged. A version that YAML would parse as a number is an error, because
// as a number 2.10 is 2.1.
//
// This package does not know the meaning of values. The caller validates them, and
// finds their positions in an [Index].
package decode

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

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

// YAML decodes one document into the struct to which into points, and returns the
// position of each value, for errors found later by the caller. name is the file in
// error messages. On an error, into is unchanged.
func YAML(name string, data []byte, into any) (Index, error) { return OpenYAML(name, data, into, nil) }

// OpenYAML is like YAML for a struct with an inline map, whose keys other packages
// define: inline holds the type of the value of each key.
func OpenYAML(name string, data []byte, into any, inline map[string]reflect.Type) (Index, error) {
	root, err := parse(name, data)
	if err != nil {
		return Index{}, err
	}
	if err := fill(name, root, into, inline); err != nil {
		return Index{}, err
	}
	index := Index{name, map[string]diag.Pos{}}
	index.add(root, "")
	return index, nil
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

// fill checks a node against the type to which into points, and decodes it.
func fill(name string, root *yaml.Node, into any, inline map[string]reflect.Type) error {
	target := reflect.ValueOf(into)
	c := checker{file: name, inline: inline}
	c.check(root, target.Type().Elem(), "")
	if err := errors.Join(c.errs...); err != nil {
		return err
	}
	fresh := reflect.New(target.Type().Elem())
	if err := root.Load(fresh.Interface(), yaml.WithKnownFields()); err != nil {
		return diag.At(diag.Pos{File: name}, "reading YAML: %w", err)
	}
	target.Elem().Set(fresh.Elem())
	return nil
}

// parse returns the root node of the one document in data.
func parse(name string, data []byte) (*yaml.Node, error) {
	if len(data) > maxBytes {
		return nil, diag.At(diag.Pos{File: name}, "larger than %d bytes", maxBytes)
	}
	var documents []yaml.Node
	if err := yaml.Load(data, &documents, yaml.WithAllDocuments()); err != nil {
		return nil, syntaxFault(name, err)
	}
	switch {
	case len(documents) == 0 || len(documents[0].Content) == 0 || documents[0].Content[0].ShortTag() == "!!null":
		return nil, diag.At(diag.Pos{File: name}, "the file is empty")
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
func syntaxFault(name string, err error) error {
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

// checker walks nodes along with a type.
type checker struct {
	file   string
	inline map[string]reflect.Type // of the values of inline maps, by key
	errs   []error
}

func (c *checker) problem(n *yaml.Node, format string, args ...any) *diag.Error {
	e := diag.At(at(c.file, n), format, args...)
	c.errs = append(c.errs, e)
	return e
}

// check compares a node with its target type. key is the preceding key, for messages.
func (c *checker) check(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		c.problem(n, "anchors and aliases are not supported: write the value itself")
		return
	}
	if reflect.PointerTo(t).Implements(textType) {
		c.checkText(n, t, key)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		c.check(n, t.Elem(), key)
	case reflect.Struct:
		c.checkStruct(n, t, key)
	case reflect.Map:
		c.checkMap(n, t, key)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			c.problem(n, "%s must be a list, not %s", key, kind(n))
			return
		}
		for _, item := range n.Content {
			c.check(item, t.Elem(), key)
		}
	default:
		c.checkScalar(n, t, key)
	}
}

func (c *checker) checkStruct(n *yaml.Node, t reflect.Type, key string) {
	fields := c.fieldsOf(t)
	c.eachPair(n, key, func(k, v *yaml.Node) {
		field, ok := fields[k.Value]
		if !ok {
			known := slices.Sorted(maps.Keys(fields))
			c.problem(k, "unknown key %s", quoted(k.Value)).Hint = diag.DidYouMean(k.Value, known)
			return
		}
		c.check(v, field, k.Value)
	})
}

func (c *checker) checkMap(n *yaml.Node, t reflect.Type, key string) {
	c.eachPair(n, key, func(k, v *yaml.Node) {
		c.checkScalar(k, t.Key(), "a key of "+key)
		c.check(v, t.Elem(), k.Value)
	})
}

// eachPair visits the pairs of a mapping and reports repeated keys.
func (c *checker) eachPair(n *yaml.Node, key string, visit func(k, v *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		is := kind(n)
		if key == "" && n.Kind == yaml.ScalarNode { // of the whole file, which may be a token or a password
			is = "a single value"
		}
		c.problem(n, "%s must be keys with values, not %s", cmp.Or(key, "the file"), is)
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode {
			c.problem(k, "a key must be a single word, not %s", kind(k))
			continue
		}
		if line, twice := first[k.Value]; twice {
			c.problem(k, "key %s occurs twice, first in line %d", quoted(k.Value), line)
			continue
		}
		first[k.Value] = k.Line
		visit(k, n.Content[i+1])
	}
}

func (c *checker) checkScalar(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind != yaml.ScalarNode {
		c.problem(n, "%s must be a single value, not %s", key, kind(n))
		return
	}
	switch t.Kind() {
	case reflect.String:
		if c.checkString(n, key) && diag.HasPassword(n.Value) {
			c.problem(n, "%s: an address contains a password", key).Hint = "readers of this file and of its results would see the password: remove it, and give the address in a flag or variable when you call builder"
		}
	case reflect.Bool:
		if n.ShortTag() != "!!bool" || n.Value != "true" && n.Value != "false" {
			c.problem(n, "%s must be true or false, not %s", key, kind(n))
		}
	case reflect.Int, reflect.Int64:
		// YAML also accepts 010 and 1_0, but their value is not the obvious one.
		i, err := strconv.ParseInt(n.Value, 10, t.Bits())
		if n.ShortTag() != "!!int" || err != nil || strconv.FormatInt(i, 10) != n.Value {
			c.problem(n, "%s must be a whole number, not %s", key, kind(n))
		}
	default:
		c.problem(n, "%s cannot be set in a file", key)
	}
}

// checkString rejects values that YAML does not parse as text. It reports whether n is
// text.
func (c *checker) checkString(n *yaml.Node, key string) bool {
	switch tag := n.ShortTag(); tag {
	case "!!str":
		return true
	case "!!int", "!!float":
		c.problem(n, "quote the version %s", n.Value).Hint = fmt.Sprintf("write %q: YAML reads %s as a number", n.Value, n.Value)
	case "!!null":
		c.problem(n, "%s has no value", key)
	default:
		c.problem(n, "quote %s: YAML reads it as %s", strings.Trim(quoted(n.Value), `"`), strings.TrimPrefix(tag, "!!"))
	}
	return false
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// checkText calls UnmarshalText on types that have it, such as a version, so that its
// error gets a position.
func (c *checker) checkText(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind != yaml.ScalarNode {
		c.problem(n, "%s must be a single value, not %s", key, kind(n))
		return
	}
	if !c.checkString(n, key) {
		return
	}
	if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
		c.problem(n, "%s: %w", key, err)
	}
}

func kind(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.ShortTag() == "!!null" {
		return "nothing"
	}
	return quoted(n.Value)
}

// maxQuoted bounds the part of a value quoted in messages, because the wrong file may
// contain a secret.
const maxQuoted = 60

// quoted returns the first line of a value in quotes, or the beginning of that line.
func quoted(text string) string {
	line, _, more := strings.Cut(text, "\n")
	if cut := strings.ToValidUTF8(line[:min(len(line), maxQuoted)], ""); len(cut) < len(line) || more {
		return fmt.Sprintf("%q…", cut)
	}
	return fmt.Sprintf("%q", line)
}

// fieldsOf returns the types of a struct's values by key. The fields of inline structs
// and the keys of inline maps are included.
func (c *checker) fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline" && f.Type.Kind() == reflect.Map:
			maps.Copy(fields, c.inline)
		case options == "inline":
			maps.Copy(fields, c.fieldsOf(f.Type))
		case f.IsExported() && name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// An Index holds the position of each value in a file.
type Index struct {
	file   string
	places map[string]diag.Pos
}

func (i Index) add(n *yaml.Node, path string) {
	i.places[path] = at(i.file, n)
	switch n.Kind {
	case yaml.MappingNode:
		for j := 0; j+1 < len(n.Content); j += 2 {
			i.add(n.Content[j+1], strings.TrimPrefix(path+"."+n.Content[j].Value, "."))
		}
	case yaml.SequenceNode:
		for j, item := range n.Content {
			i.add(item, fmt.Sprintf("%s[%d]", path, j))
		}
	}
}

// At returns the position of the value at a path such as axes[1].values[0]. format is
// as for [fmt.Sprintf]. If the value does not exist, At returns the position of the
// closest enclosing value.
func (i Index) At(format string, args ...any) diag.Pos {
	path := fmt.Sprintf(format, args...)
	for {
		if pos, ok := i.places[path]; ok {
			return pos
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return diag.Pos{File: i.file, Line: i.places[""].Line, Column: i.places[""].Column}
		}
		path = path[:cut]
	}
}
