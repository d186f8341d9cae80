package config

// Of is what a file of this content says that lies in the directory of a host.
func (h Host) Of(data []byte) (Config, error) {
	return read(Name, base{h.Dir, h}, data)
}
