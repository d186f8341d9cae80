// Package repo holds the tests of the whole repository: permitted imports between
// groups, the list of dependencies and their reasons, and rules for every page and
// workflow. It holds no other code.
package repo
