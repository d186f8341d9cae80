package pagetest

import (
	"fmt"
	"strings"

	"golang.org/x/net/html"
)

// node is an element of a page.
type node struct {
	name     string
	attr     map[string]string
	text     string // its own text and the text of all descendants
	parent   *node
	children []*node
}

// parse parses a page as browsers do.
func parse(page string) (*node, error) {
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	root := &node{}
	root.add(document)
	return root, nil
}

// add adds the descendants of an element, without scripts and styles, because no rule
// checks them.
func (n *node) add(of *html.Node) {
	for c := range of.ChildNodes() {
		switch {
		case c.Type == html.TextNode:
			for at := n; at != nil; at = at.parent {
				at.text += c.Data
			}
		case c.Type == html.ElementNode && c.Data != "script" && c.Data != "style":
			child := &node{name: c.Data, attr: map[string]string{}, parent: n}
			for _, a := range c.Attr {
				child.attr[a.Key] = a.Val
			}
			n.children = append(n.children, child)
			child.add(c)
		}
	}
}

// all returns the descendants with a name, in document order. The name "" matches all.
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

// below reports whether the node has an ancestor with the name.
func (n *node) below(name string) bool {
	for p := n.parent; p != nil; p = p.parent {
		if p.name == name {
			return true
		}
	}
	return false
}

func (n *node) words() string { return strings.Join(strings.Fields(n.text), " ") }

// label returns the accessible name of the node by its attributes.
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

// String returns the start tag of the element.
func (n *node) String() string {
	words := []string{n.name}
	for _, name := range []string{"id", "class", "role"} {
		if value := n.attr[name]; value != "" {
			words = append(words, fmt.Sprintf("%s=%q", name, value))
		}
	}
	return "<" + strings.Join(words, " ") + ">"
}
