// Package show prints what the verbs return: texts and tables for people, and JSON where
// it differs from the returned value.
package show
