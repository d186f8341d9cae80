package device

// Exported for the tests of package device_test.
const BusbwBytes = busbwBytes

var (
	Summary     = summary
	WrongValues = wrongValues
)
