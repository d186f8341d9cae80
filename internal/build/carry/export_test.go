package carry

// ReadTar is what a fuzzer reads without a file.
var ReadTar = readTar
