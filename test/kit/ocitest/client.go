package ocitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Pull returns the files of a tag, by name. It sends only requests of the distribution
// specification, like any client without knowledge of builder.
func Pull(address, tag string) (map[string][]byte, error) {
	host, repository, _ := strings.Cut(strings.TrimPrefix(address, "oci://"), "/")
	base := "http://" + host + "/v2/" + repository
	data, err := get(base + "/manifests/" + tag)
	if err != nil {
		return nil, err
	}
	var m struct {
		Layers []struct {
			Digest      string            `json:"digest"`
			Annotations map[string]string `json:"annotations"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, l := range m.Layers {
		if files[l.Annotations["org.opencontainers.image.title"]], err = get(base + "/blobs/" + l.Digest); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func get(address string) ([]byte, error) {
	req, err := http.NewRequest(http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", address, resp.Status)
	}
	return io.ReadAll(resp.Body)
}
