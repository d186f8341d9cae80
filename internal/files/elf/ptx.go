package elf

import (
	"bytes"
	"errors"
	"regexp"
)

// Directives allowed before .entry, and the name after it (PTX ISA 9.0, 4.4 and 10.1).
var (
	beforeEntry = regexp.MustCompile(`^\s*(?:\.(?:visible|weak|extern)\s+)*$`)
	entryName   = regexp.MustCompile(`^\s+([a-zA-Z][\w$]*|[_$%][\w$]+)`)
)

// ptxKernels calls found for each kernel of a PTX module.
func ptxKernels(text []byte, found func(name string, kernel bool, use Use)) error {
	const entry = ".entry"
	if !bytes.Contains(text, []byte(".version")) {
		return errors.New("it is not PTX: it has no version")
	}
	for {
		i := bytes.Index(text, []byte(entry))
		if i < 0 {
			return nil
		}
		line := text[bytes.LastIndexByte(text[:i], '\n')+1 : i]
		text = text[i+len(entry):]
		name := entryName.FindSubmatch(text[:min(len(text), maxName)])
		if name == nil || !beforeEntry.Match(line) {
			continue
		}
		found(string(name[1]), true, Use{})
	}
}
