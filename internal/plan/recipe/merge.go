package recipe

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// An item of a list has a name. Items of the same name in several settings are one item,
// so its parts can be written in different places.
type item interface{ itemName() string }

func (b Behaviour) itemName() string { return b.Name }
func (f TestFile) itemName() string  { return strings.TrimSpace(f.File + " " + f.Select) }
func (v Vendored) itemName() string  { return v.Path }
func (w Waiver) itemName() string    { return w.Gate }
func (a Advisory) itemName() string  { return a.ID }

// A merger merges settings.
type merger struct{ clash string } // the first key with two different values, or ""

// value merges two values of one type: structs by their fields, maps by their keys, and
// lists by appending. Other values are stated once, or twice with the same content. It
// changes neither, and the result shares maps and lists with them.
func (m *merger) value(at string, a, b reflect.Value) reflect.Value {
	switch {
	case b.IsZero():
		return a
	case a.IsZero() && a.Kind() != reflect.Struct && a.Kind() != reflect.Slice:
		return b
	}
	return m.stated(at, a, b)
}

// stated merges two values that both settings state.
func (m *merger) stated(at string, a, b reflect.Value) reflect.Value {
	switch a.Kind() {
	case reflect.Interface:
		if a.Elem().Kind() == b.Elem().Kind() {
			return m.stated(at, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		return m.fields(at, a, b)
	case reflect.Map:
		return m.keys(at, a, b)
	case reflect.Slice:
		return m.items(at, a, b)
	}
	if !reflect.DeepEqual(a.Interface(), b.Interface()) {
		m.clash = cmp.Or(m.clash, at)
	}
	return b
}

func (m *merger) fields(at string, a, b reflect.Value) reflect.Value {
	both := reflect.New(a.Type()).Elem()
	for i := range a.NumField() {
		key, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("yaml"), ",")
		name := strings.Trim(at+"."+key, ".") // an inline map has no key
		both.Field(i).Set(m.value(name, a.Field(i), b.Field(i)))
	}
	return both
}

func (m *merger) keys(at string, a, b reflect.Value) reflect.Value {
	both := reflect.MakeMap(a.Type())
	for _, key := range a.MapKeys() {
		both.SetMapIndex(key, a.MapIndex(key))
	}
	keys := b.MapKeys()
	slices.SortFunc(keys, func(x, y reflect.Value) int { return strings.Compare(x.String(), y.String()) })
	for _, key := range keys {
		value := b.MapIndex(key)
		if had := a.MapIndex(key); had.IsValid() {
			value = m.stated(at+"."+key.String(), had, value)
		}
		both.SetMapIndex(key, value)
	}
	return both
}

// items appends the items of b, except those that a names too: it merges these.
func (m *merger) items(at string, a, b reflect.Value) reflect.Value {
	both := reflect.AppendSlice(reflect.MakeSlice(a.Type(), 0, a.Len()+b.Len()), a)
	for i := range b.Len() {
		x, named := b.Index(i).Interface().(item)
		same := -1
		for j := range both.Len() {
			if named && both.Index(j).Interface().(item).itemName() == x.itemName() {
				same = j
			}
		}
		if same < 0 {
			both = reflect.Append(both, b.Index(i))
			continue
		}
		one := both.Index(same)
		one.Set(m.value(at+"["+x.itemName()+"]", one, b.Index(i)))
	}
	return both
}
