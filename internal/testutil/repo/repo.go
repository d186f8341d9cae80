// Package repo holds the tests about the whole repository: which group imports which,
// which libraries are used and why, and what every page and workflow must keep to. It
// holds no other code.
package repo
