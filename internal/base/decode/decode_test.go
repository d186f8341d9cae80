package decode_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"builder/internal/base/decode"
	"builder/internal/base/diag"
	"builder/test/kit/check"
)

type inner struct {
	Name   string   `yaml:"name"`
	Values []string `yaml:"values"`
	Count  int      `yaml:"count"`
}

type common struct {
	Env map[string]string `yaml:"env"`
}

type outer struct {
	Title  string  `yaml:"title"`
	Strict bool    `yaml:"strict"`
	Axes   []inner `yaml:"axes"`
	Only   *inner  `yaml:"only"`
	common `yaml:",inline"`
}

func TestGood(t *testing.T) {
	var v outer
	_, err := decode.YAML("a.yaml", []byte("title: x\nstrict: true\naxes:\n  - {name: rocm, values: [\"6.10\", gfx90a, on], count: 2}\nonly: {name: y}\nenv: {A: \"1\"}\n"), &v)
	if err != nil || v.Axes[0].Values[0] != "6.10" || v.Axes[0].Values[2] != "on" || v.Axes[0].Count != 2 || v.Only.Name != "y" || v.Env["A"] != "1" || !v.Strict {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"unknown key":     {"titel: x\n", `a.yaml:1:1: unknown key "titel"`},
		"in a list":       {"axes:\n  - labl: x\n", `a.yaml:2:5: unknown key "labl"`},
		"unquoted":        {"axes:\n  - values: [2.9, 2.10]\n", "a.yaml:2:14: quote the version 2.9\na.yaml:2:19: quote the version 2.10"},
		"unquoted int":    {"title: 6\n", "a.yaml:1:8: quote the version 6"},
		"bool for string": {"title: true\n", "a.yaml:1:8: quote true"},
		"null for string": {"title:\n", "title has no value"},
		"twice":           {"title: a\ntitle: b\n", `a.yaml:2:1: key "title" occurs twice, first in line 1`},
		"no list":         {"axes: x\n", `a.yaml:1:7: axes must be a list, not "x"`},
		"no mapping":      {"- a\n", "the file must be keys with values, not a list"},
		"list for value":  {"title: [a]\n", "title must be a single value, not a list"},
		"tagged bool":     {"strict: !!bool on\n", "strict must be true or false"},
		"octal":           {"axes: [{count: 010}]\n", `count must be a whole number, not "010"`},
		"key is a list":   {"? [a]\n: b\n", "a.yaml:1:3: a key must be a single word, not a list"},
		"date":            {"title: 2023-06-12\n", "a.yaml:1:8: quote 2023-06-12"},
		"merge":           {"env: {<<: x}\n", "a.yaml:1:7: quote <<"},
		"deep":            {"title: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "nested more than 32 deep"},
		"large":           {"title: " + strings.Repeat("x", 1<<20), "larger than"},
		"second document": {"title: a\n---\ntitle: b\n", "a second document"},
		"empty":           {"", "the file is empty"},
		"comment only":    {"# x\n", "the file is empty"},
		"syntax":          {"title: [a\n", "a.yaml:2:1: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence, which begins in line 1"},
		"latin-1":         {"title: a\n# caf\xe9\n", "a.yaml:2: not valid YAML: the line is not UTF-8"},
		"tab":             {"a:\n\tb: c\n", "a.yaml:2:1: not valid YAML"},
		"no anchor":       {"title: *b\n", "a.yaml:1:8: not valid YAML: an alias refers to nothing"},
		"second broken":   {"title: a\n---\nc: [\n", "not valid YAML"},
		"alias":           {"title: &a x\nenv: {b: *a}\n", "anchors and aliases"},
		"number":          {"axes: [{count: many}]\n", `count must be a whole number, not "many"`},
		"yes":             {"strict: 1\n", "strict must be true or false"},
		"env":             {"env: {A: 1}\n", "quote the version 1"},
	} {
		v := outer{Title: "before"}
		_, err := decode.YAML("a.yaml", []byte(c.yaml), &v)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		check.That(t, v.Title == "before", "%s: the value was touched: %+v", name, v)
		check.That(t, diag.CodeOf(err) == diag.Usage && !strings.Contains(err.Error(), "decode_test"),
			"%s: class %v, text %v", name, diag.CodeOf(err), err)
	}
}

// The tags of the schema hold, and their faults come together with those of the caller.
func TestTagsAreRules(t *testing.T) {
	type part struct {
		Kind string `yaml:"kind" json:"kind" jsonschema:"enum=a,enum=b"`
		Note string `yaml:"note,omitempty" json:"note,omitempty"`
	}
	type whole struct {
		Name  string `yaml:"name" json:"name"`
		Parts []part `yaml:"parts" json:"parts" jsonschema:"minItems=1"`
		Plain string `yaml:"plain"`
	}
	for text, want := range map[string]string{
		"name: x\nparts: [{kind: a}]\n":       "",
		"name: x\nparts: []\n":                "a.yaml:2:8: parts is empty: write at least one",
		"name: ' '\nparts: [{kind: b}]\n":     "a.yaml:1:7: name is missing",
		"parts: [{kind: c}, {note: y}]\n":     "a.yaml:1:16: parts.kind: \"c\" is not a or b\na.yaml:1:20: parts.kind is missing\na.yaml:1:1: name is missing",
		"name: x\nparts: [{kind: a}]\nn: 1\n": `a.yaml:3:1: unknown key "n"`,
	} {
		f, err := decode.YAML("a.yaml", []byte(text), new(whole))
		if err == nil {
			err = f.Err()
		}
		check.That(t, (err == nil) == (want == "") && (err == nil || err.Error() == want), "%q: %v, want %s", text, err, want)
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	var v outer
	_, err := decode.YAML("a.yaml", []byte("titel: x\naxes:\n  - {name: 1, valeus: []}\n"), &v)
	check.Same(t, "the number of faults", 3, len(diag.Split(err)))
}

func TestHintNamesTheNearestKey(t *testing.T) {
	var v outer
	_, err := decode.YAML("a.yaml", []byte("titel: x\n"), &v)
	var e *diag.Error
	check.That(t, errors.As(err, &e) && strings.Contains(e.Hint, `did you mean "title"?`) && strings.Contains(e.Hint, "env"), "got %+v", e)
}

func TestPositions(t *testing.T) {
	text := []byte("title: x\naxes:\n  - name: rocm\n    values: [\"5.7\", \"6.1\"]\n")
	var v outer
	index, err := decode.YAML("a.yaml", text, &v)
	check.That(t, err == nil && v.Title == "x", "%+v, %v", v, err)
	for path, want := range map[string]string{
		"axes[0].values[1]": "a.yaml:4:21", "axes[0].name": "a.yaml:3:11", "axes[0].missing": "a.yaml:3:5", "gone": "a.yaml:1:1",
	} {
		check.Same(t, path, want, index.At(path).String())
	}
}

func FuzzYAML(f *testing.F) {
	f.Add([]byte("title: x\naxes:\n  - {name: rocm, values: [\"6.10\"]}\n"))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"))
	f.Add([]byte("strict: true\nonly: {count: 1}\nenv: {A: \"1\", ? [b] : c}\n--- \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v outer
		_, err := decode.YAML("a.yaml", data, &v)
		check.That(t, err == nil || diag.CodeOf(err) == diag.Usage, "class %v: %v", diag.CodeOf(err), err)
		// The checks must find every error before the library decodes, because its
		// messages name Go types.
		check.That(t, err == nil || !strings.Contains(err.Error(), "reading YAML"), "a fault that was not foreseen: %v", err)
	})
}

// A file that is one value may be a token or a password, and is never shown.
func TestAFileOfOneValueIsNotQuoted(t *testing.T) {
	for _, text := range []string{
		"secret", "---\nsecret\n", "\"secret\"", "'secret'", "!x secret", "|\n secret", "machine host login me\n  secret\n", "*secret", "&a secret", "!secret", "%secret", "[secret",
	} {
		var into struct {
			Name string `yaml:"name"`
		}
		_, err := decode.YAML("file", []byte(text), &into)
		check.That(t, err != nil && !strings.Contains(err.Error(), "secret"), "%q: %v", text, err)
	}
}

func TestJSON(t *testing.T) {
	type inner struct {
		Size int `json:"size"`
	}
	type outer struct {
		Name string  `json:"name"`
		All  []inner `json:"all"`
	}
	for text, want := range map[string]string{
		`{"name": "a", "all": [{"size": 1}]}`:       "",
		`{"name": "a", "mane": "b"}`:                `1: unknown field "mane"`,
		"{\"all\":\n[{\"size\": 1, \"sise\": 2}]}":  `2: unknown field "sise"`,
		`{"Name": "a"}`:                             `1: unknown field "Name"`,
		`{"name": "a", "name": "b"}`:                `1: "name" occurs twice`,
		`{"name": "a", "n\u0061me": "b"}`:           `1: "name" occurs twice`,
		"{\"all\": [{}, {\"size\": \"hush\"}]}":     `1: all/1/size has the wrong type`,
		`{"all": [{"size": 1.5}]}`:                  `1: all/0/size has the wrong type`,
		`{"all": [{"size": 99999999999999999999}]}`: `1: all/0/size has the wrong type`,
		`[]`:                    `1: the file has the wrong type`,
		`{"name": {}}`:          `1: name has the wrong type`,
		``:                      `1: unexpected EOF`,
		`{"name": "a"`:          `1: unexpected EOF`,
		`{"name": "a"} {}`:      `1: invalid character '{' after top-level value`,
		"{\"name\": \"a\xff\"}": `1: invalid UTF-8`,
	} {
		var v outer
		err := decode.JSON([]byte(text), &v)
		got := ""
		if fault, ok := errors.AsType[*decode.Fault](err); ok {
			got = fmt.Sprintf("%d: %v", fault.Line, fault)
		}
		check.That(t, (err == nil) == (want == "") && strings.HasPrefix(got, want) && !strings.Contains(got, "hush"),
			"%.60s: got %s (%v), want %s", text, got, err, want)
	}
	var v outer
	err := decode.OpenJSON([]byte(`{"name": "a", "mane": "b"}`), &v)
	check.That(t, err == nil && v.Name == "a", "an unknown field: %+v, %v", v, err)
	err = decode.OpenJSON([]byte(`{"name": "a", "x": 1, "x": 2}`), &v)
	check.That(t, err != nil, "a repeated field is taken")
}
