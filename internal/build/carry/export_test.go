package carry

// ReadTar reads an archive without a file, for the fuzz test.
var ReadTar = readTar
