package term

// Wrap is the wrapping of errors, which needs a terminal to be seen.
var Wrap = wrap
