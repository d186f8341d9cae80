package wheel

import (
	"bytes"
	"fmt"
)

// ReadFiles returns the members of a wheel chosen by wanted, by name. It leaves out
// members of more than limit bytes. The wheel may have any file name.
func ReadFiles(path string, wanted func(name string) bool, limit int64) (map[string][]byte, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	archive, err := openZIP(f, size)
	if err != nil {
		return nil, fmt.Errorf("opening wheel %q: %w", path, err)
	}
	files := map[string][]byte{}
	for _, member := range archive.File {
		if !wanted(member.Name) || !member.Mode().IsRegular() || member.UncompressedSize64 > uint64(max(limit, 0)) {
			continue
		}
		var b bytes.Buffer
		if err := copyMember(&b, member); err != nil {
			return nil, fmt.Errorf("opening wheel %q: %w", path, err)
		}
		files[member.Name] = b.Bytes()
	}
	return files, nil
}
