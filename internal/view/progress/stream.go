package progress

import (
	"bytes"
	"io"

	"builder/internal/view/term"
)

// stream writes each event as one line of JSON, for programs.
type stream struct{ w io.Writer }

func (s *stream) draw(events []Event, _ moment) {
	var b bytes.Buffer
	for _, e := range events {
		_ = term.JSON(&b, e, "") // texts and numbers always encode
	}
	if b.Len() > 0 {
		_, _ = s.w.Write(b.Bytes()) // there is no other place to report an error
	}
}
