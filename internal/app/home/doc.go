// Package home is the state directory of a user: its place, and its store with the programs
// that builds use.
package home
