// Package view is a folder of packages and holds no code. Its packages present results:
// run.json, the pages, progress and the terminal. They make no decisions.
package view
