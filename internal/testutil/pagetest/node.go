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
	text     string // of its own, and of all that is below it
	parent   *node
	children []*node
}

// parse reads a page as browsers do.
func parse(page string) (*node, error) {
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return nil, err
	}
	root := &node{}
	root.add(document)
	return root, nil
}

// add adds what is below an element. The rules do not look at scripts and styles.
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
