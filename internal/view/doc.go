// Package view is a folder of packages and holds no code. Its packages hold how
// results are shown: run.json, the pages, charts, progress and the terminal. They do
// not hold a decision.
package view
