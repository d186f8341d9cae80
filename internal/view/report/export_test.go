package report

// OpenContent is [Open] of a directory whose run.json has this content.
func OpenContent(dir string, content []byte) (Part, error) {
	run, err := decode(dir, content)
	return opened(dir, run, err)
}
