package regular

import "fmt"

// A Buffer keeps the output of a program, at most Max bytes. It drops what comes later,
// or refuses it if a part of the output is worth nothing. It embeds no [bytes.Buffer],
// whose ReadFrom would pass by the limit.
type Buffer struct {
	Max   int
	Whole bool // refuse more than Max bytes
	kept  []byte
}

// Write implements [io.Writer].
func (b *Buffer) Write(p []byte) (int, error) {
	left := b.Max - len(b.kept)
	if b.Whole && len(p) > left {
		return 0, fmt.Errorf("it printed more than %d bytes", b.Max)
	}
	b.kept = append(b.kept, p[:min(len(p), left)]...)
	return len(p), nil
}

// Bytes returns what was kept.
func (b *Buffer) Bytes() []byte { return b.kept }

// String returns what was kept.
func (b *Buffer) String() string { return string(b.kept) }
