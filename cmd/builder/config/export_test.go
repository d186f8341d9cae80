package config

// Of parses data as a file in the directory of a host.
func (h Host) Of(data []byte) (Config, error) {
	return read(Name, base{h.Dir, h}, data)
}
