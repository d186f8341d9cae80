package term

import "io"

// Checked records the first write error, for example on a full disk. A truncated result
// is a failure.
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
