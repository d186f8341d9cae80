package report

// OpenContent is [Open] for a directory whose run.json has this content.
func OpenContent(dir string, content []byte) (Part, error) {
	run, err := decode(dir, content)
	return opened(dir, run, err)
}
