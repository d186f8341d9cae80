//go:build !linux

package pipelines

// killMarked does nothing on systems without /proc. The client program of a hung engine
// then outlives the session by up to five minutes.
func killMarked(string) {}
