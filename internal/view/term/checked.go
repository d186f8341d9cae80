package term

import "io"

// Checked remembers that a result could not be written, on a full disk say:
// half a result is not done.
type Checked struct {
	W   io.Writer
	Err error
}

// Write implements [io.Writer].
func (c *Checked) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	if c.Err == nil {
		c.Err = err
	}
	return n, err
}
