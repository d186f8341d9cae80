package report

// OpenContent is [Open] for a directory with this content in run.json.
func OpenContent(dir string, content []byte) (Part, error) {
	run, err := decode(dir, content)
	return opened(dir, run, err)
}
