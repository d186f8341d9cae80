package device

// Exported for the tests of package device_test.
const BusbwBytes = busbwBytes

var (
	SizeText    = sizeText
	Summary     = summary
	WrongValues = wrongValues
)
