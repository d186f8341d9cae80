package repo_test

import "testing"

// atRoot lets a test name files relative to the root of the repository. Go's test cache
// notices changed files only if the directory changes inside a test: a Chdir in TestMain
// left it with paths that do not exist, and failures stayed hidden.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../..")
}
