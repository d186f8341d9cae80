package sbom

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"builder/internal/files/wheel"
)

// maker is the supplier of the artifact and of the patches in it.
const maker = "builder"

// ownerOf returns the owner of a repository by its address: of https://forge/OWNER/NAME
// the OWNER, and of an address without a path its host. It returns "" for anything but a
// web address.
func ownerOf(repository string) string {
	u, err := url.Parse(repository)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	first, rest, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if rest == "" {
		return u.Host
	}
	return first
}

// organization returns a supplier in the form of SPDX 2.3, or "" for no name.
func organization(name string) string {
	if name == "" {
		return ""
	}
	return "Organization: " + name
}

// suppliers lists who makes the libraries that artifacts of the recipes take from the
// host. The patterns match the soname up to ".so".
var suppliers = []struct {
	library *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`^(ld-linux.*|lib(c|m|dl|rt|pthread|util|resolv|anl|mvec|stdc\+\+|gcc_s|gomp|gfortran|quadmath|atomic))$`), "GNU Project"},
	{regexp.MustCompile(`^lib(cuda|cudart|nccl|nvrtc|nvidia-ml|nvToolsExt|cublas|cublasLt|cudnn|cufft|curand|cusolver|cusparse|nvshmem_host)$`), "NVIDIA"},
	{regexp.MustCompile(`^lib(amdhip64|hsa-runtime64|hiprtc|rccl|amd_comgr|roctx64|roctracer64|rocm_smi64|rocblas|rocprofiler.*)$`), "AMD"},
	{regexp.MustCompile(`^lib(torch.*|c10.*|shm)$`), "PyTorch"},
	{regexp.MustCompile(`^lib(tensorflow.*)$`), "TensorFlow"},
	{regexp.MustCompile(`^libpython.*$`), "Python Software Foundation"},
	{regexp.MustCompile(`^lib(ibverbs|rdmacm|mlx5)$`), "linux-rdma"},
	{regexp.MustCompile(`^lib(mpi|mpi_cxx|open-rte|open-pal|mpicxx)$`), "MPI library of the host"},
	{regexp.MustCompile(`^libnuma$`), "numactl"},
	{regexp.MustCompile(`^libz$`), "zlib"},
}

// supplierOf returns the supplier of a library of the host, or "" if it is not known.
func supplierOf(soname string) string {
	library, _, _ := strings.Cut(soname, ".so")
	for _, s := range suppliers {
		if s.library.MatchString(library) {
			return s.name
		}
	}
	return ""
}

// Limits of reading licence files. More notices than these are left out.
const (
	maxLicense = 1 << 20 // bytes of a file
	maxNotices = 64
	maxNotice  = 200 // characters
)

var (
	licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)`)
	notice      = regexp.MustCompile(`(?i)\bcopyright\b.*\b(19|20)\d\d\b`)
)

// notices returns the lines with a copyright notice and a year in the licence files of
// a wheel, or "" if there are none.
func notices(w *wheel.Wheel) (string, error) {
	var all []string
	for _, f := range w.Files {
		if !strings.HasPrefix(f.Name, w.DistInfo+"/") || !licenseFile.MatchString(path.Base(f.Name)) {
			continue
		}
		text, err := head(w, f.Name)
		if err != nil {
			return "", fmt.Errorf("%s: %w", f.Name, err)
		}
		for line := range strings.Lines(text) {
			line = strings.Join(strings.Fields(line), " ")
			if len(all) < maxNotices && len(line) <= maxNotice && notice.MatchString(line) && printable(line) && !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return strings.Join(all, "\n"), nil
}

// head returns the beginning of a member.
func head(w *wheel.Wheel, name string) (string, error) {
	r, err := w.Open(context.Background(), name)
	if err != nil {
		return "", err
	}
	defer r.Close()
	text, err := io.ReadAll(io.NewSectionReader(r, 0, maxLicense))
	return string(text), err
}

func printable(line string) bool {
	return !strings.ContainsFunc(line, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) })
}
