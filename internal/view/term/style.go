package term

import (
	"fmt"
	"time"

	"charm.land/lipgloss/v2"
)

var (
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	busy  = lipgloss.NewStyle().Foreground(lipgloss.Magenta) // magenta is readable on white and on black
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
)

// Good renders text in the colour of success.
func Good(text string) string { return good.Render(text) }

// Bad renders text in the colour of failure.
func Bad(text string) string { return bad.Render(text) }

// Busy renders text in the colour of running work.
func Busy(text string) string { return busy.Render(text) }

// Faint renders text in the colour of unfinished work.
func Faint(text string) string { return faint.Render(text) }

// Duration formats a duration: tenths of a second below a minute, else whole seconds.
func Duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// Columns returns the number of columns of a line.
func Columns(line string) int { return lipgloss.Width(line) }
