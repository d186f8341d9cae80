// Package judge holds the verbs that examine artifacts and their statements: gate, bench,
// verify, diagnose and key sign.
package judge
