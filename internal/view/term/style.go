package term

import (
	"fmt"
	"time"

	"charm.land/lipgloss/v2"
)

var (
	bad  = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	bold = lipgloss.NewStyle().Bold(true)
)

// These render a text in the colour of success, failure, running and unfinished work.
// Magenta is readable on white and on black.
var (
	Good  = lipgloss.NewStyle().Foreground(lipgloss.Green).Render
	Bad   = bad.Render
	Busy  = lipgloss.NewStyle().Foreground(lipgloss.Magenta).Render
	Faint = lipgloss.NewStyle().Faint(true).Render
)

// Duration formats a duration: tenths of a second below a minute, else whole seconds.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Columns returns the number of columns of a line.
func Columns(line string) int { return lipgloss.Width(line) }
