package progress

import (
	"bytes"
	"encoding/json"
	"io"
)

// stream writes every event as one line of JSON, for programs.
type stream struct{ w io.Writer }

func (s *stream) draw(events []Event, _ moment) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // a log is full of < and >
	for _, e := range events {
		_ = encoder.Encode(e) // of texts and numbers, which can be written
	}
	if b.Len() > 0 {
		_, _ = s.w.Write(b.Bytes()) // nobody is left to be told
	}
}
