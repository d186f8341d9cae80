package device

// What the tests from outside look at.
const BusbwBytes = busbwBytes

var (
	SizeText    = sizeText
	Summary     = summary
	WrongValues = wrongValues
)
