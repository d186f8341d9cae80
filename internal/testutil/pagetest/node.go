package pagetest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// node is an element of a page.
type node struct {
	name     string
	attr     map[string]string
	text     string // of its own, and of all that is below it
	parent   *node
	children []*node
}

// unread is what the rules do not look at, and is no HTML inside.
var unread = regexp.MustCompile(`(?s)<(script|style)>.*?</(script|style)>`)

// parse reads a page whose elements are all closed, but for those that HTML never
// closes.
func parse(page string) (*node, error) {
	d := xml.NewDecoder(strings.NewReader(unread.ReplaceAllString(page, "")))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	root := &node{}
	at := root
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, fmt.Errorf("at byte %d: %w", d.InputOffset(), err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			n := &node{name: token.Name.Local, attr: map[string]string{}, parent: at}
			for _, a := range token.Attr {
				n.attr[a.Name.Local] = a.Value
			}
			at.children = append(at.children, n)
			at = n
		case xml.EndElement:
			at = at.parent
		case xml.CharData:
			for n := at; n != nil; n = n.parent {
				n.text += string(token)
			}
		}
	}
}

// all returns the elements of a name below a node, in their order; "" is any name.
func (n *node) all(name string) []*node {
	var found []*node
	for _, c := range n.children {
		if name == "" || c.name == name {
			found = append(found, c)
		}
		found = append(found, c.all(name)...)
	}
	return found
}

// below reports whether a node lies in an element of a name.
func (n *node) below(name string) bool {
	for p := n.parent; p != nil; p = p.parent {
		if p.name == name {
			return true
		}
	}
	return false
}

func (n *node) words() string { return strings.Join(strings.Fields(n.text), " ") }

// label is what a node is called by its attributes.
func (n *node) label(page *node) string {
	if label := n.attr["aria-label"]; label != "" {
		return label
	}
	for _, other := range page.all("") {
		if id := other.attr["id"]; id != "" && id == n.attr["aria-labelledby"] {
			return other.words()
		}
	}
	return ""
}

// String is the element as it begins.
func (n *node) String() string {
	words := []string{n.name}
	for _, name := range []string{"id", "class", "role"} {
		if value := n.attr[name]; value != "" {
			words = append(words, fmt.Sprintf("%s=%q", name, value))
		}
	}
	return "<" + strings.Join(words, " ") + ">"
}
