package term

import "charm.land/lipgloss/v2"

var (
	good  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad   = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
	busy  = lipgloss.NewStyle().Foreground(lipgloss.Magenta) // the one that is as clear on white as on black
	faint = lipgloss.NewStyle().Faint(true)
	bold  = lipgloss.NewStyle().Bold(true)
)

// Good is text in the colour of what went well.
func Good(text string) string { return good.Render(text) }

// Bad is text in the colour of what did not.
func Bad(text string) string { return bad.Render(text) }

// Busy is text in the colour of what goes on.
func Busy(text string) string { return busy.Render(text) }

// Faint is text in the colour of what did not come to its end.
func Faint(text string) string { return faint.Render(text) }

// Columns returns how many columns a line takes.
func Columns(line string) int { return lipgloss.Width(line) }
