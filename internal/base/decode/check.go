package decode

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"builder/internal/base/diag"
)

// checker walks nodes along with a type.
type checker struct {
	file   string
	inline map[string]reflect.Type // of the values of inline maps, by key
	errs   []error
	faults []error // against tags: the value can be decoded
}

func (c *checker) problem(n *yaml.Node, format string, args ...any) *diag.Error {
	e := diag.At(at(c.file, n), format, args...)
	c.errs = append(c.errs, e)
	return e
}

func (c *checker) fault(n *yaml.Node, format string, args ...any) {
	c.faults = append(c.faults, diag.At(at(c.file, n), format, args...))
}

// check compares a node with its target type. key is the preceding key, for messages.
func (c *checker) check(n *yaml.Node, t reflect.Type, key string) {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		c.problem(n, "anchors and aliases are not supported: write the value itself")
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		c.check(n, t.Elem(), key)
	case reflect.Struct:
		c.checkStruct(n, t, key)
	case reflect.Map:
		c.eachPair(n, key, func(k, v *yaml.Node) {
			c.checkScalar(k, t.Key(), "a key of "+key)
			c.check(v, t.Elem(), k.Value)
		})
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
	known, stated := slices.Sorted(maps.Keys(fields)), map[string]bool{}
	c.eachPair(n, key, func(k, v *yaml.Node) {
		field, ok := fields[k.Value]
		if !ok {
			c.problem(k, "unknown key %s", quoted(k.Value)).Hint = diag.DidYouMean(k.Value, known)
			return
		}
		stated[k.Value] = true
		c.check(v, field.Type, k.Value)
		c.checkTags(v, field, strings.TrimPrefix(key+"."+k.Value, "."))
	})
	for _, name := range known {
		if !stated[name] && required(fields[name]) && n.Kind == yaml.MappingNode {
			c.fault(n, "%s is missing", strings.TrimPrefix(key+"."+name, "."))
		}
	}
}

// required reports whether a key must have a value: the JSON of its struct always has it.
func required(f reflect.StructField) bool {
	tag := f.Tag.Get("json")
	return tag != "" && !strings.Contains(tag, ",omit")
}

// checkTags checks a value against the tags of its field.
func (c *checker) checkTags(n *yaml.Node, f reflect.StructField, key string) {
	rules := strings.Split(f.Tag.Get("jsonschema"), ",")
	var enum []string
	for _, rule := range rules {
		if value, ok := strings.CutPrefix(rule, "enum="); ok {
			enum = append(enum, value)
		}
	}
	switch {
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0 && slices.Contains(rules, "minItems=1"):
		c.fault(n, "%s is empty: write at least one", key)
	case n.Kind != yaml.ScalarNode:
	case required(f) && strings.TrimSpace(n.Value) == "":
		c.fault(n, "%s is missing", key)
	case enum != nil && !slices.Contains(enum, n.Value):
		c.fault(n, "%s: %s is not %s", key, quoted(n.Value), strings.Join(enum, " or "))
	}
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

// fieldsOf returns the fields of a struct by key. The fields of inline structs and the
// keys of inline maps are included.
func (c *checker) fieldsOf(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case options == "inline" && f.Type.Kind() == reflect.Map:
			for key, of := range c.inline {
				fields[key] = reflect.StructField{Type: of}
			}
		case options == "inline":
			maps.Copy(fields, c.fieldsOf(f.Type))
		case f.IsExported() && name != "" && name != "-":
			fields[name] = f
		}
	}
	return fields
}
