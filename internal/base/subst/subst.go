// Package subst replaces {{name}} in the texts of recipes, images and patches with the
// values of axes and image facts. It has no conditions, functions or defaults, so a
// text is readable without a manual.
package subst

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"builder/internal/base/diag"
)

// Constant reports whether no text has a placeholder. Most texts of a recipe have none.
func Constant(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "{{") })
}

// Expand returns the text with every {{name}} replaced by vars[name]. It reports all
// names without a value together.
func Expand(text string, vars map[string]string) (string, error) {
	if Constant(text) {
		return text, nil
	}
	var errs []error
	expanded := placeholder.ReplaceAllStringFunc(text, func(braced string) string {
		name := strings.Trim(braced, "{}\t\n\f\r ")
		value, ok := vars[name]
		if !ok {
			hint := diag.DidYouMean(name, slices.Sorted(maps.Keys(vars)))
			errs = append(errs, diag.Errorf(diag.Usage, "unknown name %q in %q", name, text).WithHint("%s", hint))
		}
		return value
	})
	return expanded, errors.Join(errs...)
}

var placeholder = regexp.MustCompile(`\{\{[^{}]*\}\}`)

// Deep returns a copy of a value with every text in it expanded: those of structs, lists
// and maps too. It leaves out the fields of structs with the tag `subst:"-"`.
func Deep[T any](value T, vars map[string]string) (T, error) {
	d := deep{vars: vars}
	expanded := d.value(reflect.ValueOf(&value).Elem()).Interface().(T)
	return expanded, errors.Join(d.errs...)
}

// deep expands values of any type and collects the faults.
type deep struct {
	vars map[string]string
	errs []error
}

func (d *deep) value(v reflect.Value) reflect.Value {
	fresh := reflect.New(v.Type()).Elem()
	fresh.Set(v)
	switch v.Kind() {
	case reflect.String:
		text, err := Expand(v.String(), d.vars)
		d.errs = append(d.errs, err)
		fresh.SetString(text)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("subst") != "-" {
				fresh.Field(i).Set(d.value(v.Field(i)))
			}
		}
	case reflect.Slice:
		if !v.IsNil() {
			fresh.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		}
		for i := range v.Len() {
			fresh.Index(i).Set(d.value(v.Index(i)))
		}
	case reflect.Map:
		if !v.IsNil() {
			fresh.Set(reflect.MakeMapWithSize(v.Type(), v.Len()))
		}
		for _, key := range slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }) {
			fresh.SetMapIndex(key, d.value(v.MapIndex(key)))
		}
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			break
		}
		inner := d.value(v.Elem())
		if v.Kind() == reflect.Pointer {
			fresh.Set(reflect.New(inner.Type()))
			fresh.Elem().Set(inner)
			break
		}
		fresh.Set(inner)
	}
	return fresh
}
