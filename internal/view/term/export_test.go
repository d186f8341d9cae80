package term

// Wrap exports wrap, because PrintError wraps only on a terminal.
var Wrap = wrap
