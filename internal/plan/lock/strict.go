package lock

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// strict walks a JSON value together with the type into which it was decoded. It
// rejects an object with a repeated or an unknown field. encoding/json uses the last of
// two fields and ignores case, so another reader of the file might use the first. On an
// error, the offset of dec is its position.
func strict(dec *json.Decoder, t reflect.Type) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if open == '{' {
		err = strictObject(dec, t)
	} else {
		err = strictList(dec, t)
	}
	if err != nil {
		return err
	}
	_, err = dec.Token()
	return err
}

func strictList(dec *json.Decoder, t reflect.Type) error {
	for dec.More() {
		if err := strict(dec, element(t)); err != nil {
			return err
		}
	}
	return nil
}

func strictObject(dec *json.Decoder, t reflect.Type) error {
	known := fields(t)
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		name := fmt.Sprint(token)
		folded := strings.ToLower(name)
		if seen[folded] {
			return fmt.Errorf("%q occurs twice", folded)
		}
		seen[folded] = true
		field, ok := known[name]
		if !ok {
			return fmt.Errorf("unknown field %q", name)
		}
		if err := strict(dec, field); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the JSON names of a struct's fields with their types, including those
// of embedded structs.
func fields(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	all := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return all
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "" && f.Anonymous:
			maps.Copy(all, fields(f.Type))
		case name != "" && name != "-":
			all[name] = f.Type
		}
	}
	return all
}

// element returns the element type of a list.
func element(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		return t.Elem()
	}
	return t
}
