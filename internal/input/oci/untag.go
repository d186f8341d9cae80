package oci

import (
	"context"
	"fmt"
	"net/http"

	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"builder/internal/base/diag"
)

// Untag removes a tag and keeps its content. The error for a missing tag is [NotFound].
// Registries without this operation (those of the distribution project before 3.0)
// remove tags together with the manifest, see [Repository.Delete].
func (r *Repository) Untag(ctx context.Context, tag string) error {
	return r.fail(ctx, diag.Publish, r.untag(ctx, tag), "removing the tag %q in %s", tag, r)
}

// untag sends its own request, because oras-go deletes by digest only.
func (r *Repository) untag(ctx context.Context, tag string) error {
	if err := checkTag(tag); err != nil {
		return err
	}
	scheme := "https"
	if r.repo.PlainHTTP {
		scheme = "http"
	}
	ref := r.repo.Reference
	address := fmt.Sprintf("%s://%s/v2/%s/manifests/%s", scheme, ref.Host(), ref.Repository, tag)
	_, err := do(ctx, r, func(ctx context.Context) (bool, error) {
		req, err := http.NewRequestWithContext(auth.AppendRepositoryScope(ctx, ref, auth.ActionDelete), http.MethodDelete, address, nil)
		if err != nil {
			return false, err
		}
		resp, err := r.repo.Client.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusAccepted, http.StatusOK, http.StatusNoContent:
			return true, nil
		case http.StatusNotFound:
			return false, &NotFound{}
		}
		return false, &errcode.ErrorResponse{Method: req.Method, URL: req.URL, StatusCode: resp.StatusCode}
	})
	return err
}
