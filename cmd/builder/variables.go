package main

import (
	"cmp"
	"os"

	"builder/internal/build/native"
	"builder/pipelines"
)

// A variable is a setting of this host or site that has no flag.
type variable struct{ name, about, fallback string }

// The variables that [readEngines] reads.
var (
	enginePatience = variable{"BUILDER_ENGINE_PATIENCE", "give up an engine after this TIME without a response, such as 90s", pipelines.Patience.String()}
	engineCache    = variable{"BUILDER_ENGINE_CACHE", "limit the cache of an engine started by builder to SIZE, such as 40GB, or a share of the disk", "60%"}
	engineImage    = variable{native.ImageVariable, "copy the engine from PLACE@sha256:DIGEST and do not compile it; PLACE is a URL or file:PATH", ""}
)

// variables lists the variables without a flag, in the order of the reference.
var variables = []variable{
	{"BUILDER_HOME", "directory of the tool's own files: store, engine and keys", ""},
	enginePatience, engineCache, engineImage,
	{"BUILDER_MIRROR_DEBIAN", "addresses of Debian mirrors, or file:DIR; the first resolves names and needs the index of an archive; the default comes from this host's apt", ""},
	{"BUILDER_MIRROR_DEBIAN_SNAPSHOT", "address of a Debian snapshot archive, for packages missing on the mirrors", ""},
	{"BUILDER_MIRROR_MAVEN", "addresses of Maven repositories, or file:DIR, with the CPythons of images/cpython.yaml; the default comes from Maven's settings on this host", ""},
	{"BUILDER_MIRROR_REGISTRY", "HOST[:PORT][/PATH] to pull images of Docker Hub from; REGISTRY=HOST[:PORT][/PATH] for another registry", ""},
	{"BUILDER_MIRROR_SOURCE", "NAME=PATH or NAME=URL of a source, a Debian package or a Python package to fetch there first, as --set source.NAME for every run; a name may occur for each of several files", ""},
	{"BUILDER_PYTHON_INDEX", "NAME=URL of a Python index for the packages whose requirement ends with from NAME; they come from nowhere else, and nothing else comes from there", ""},
}

// value returns the value of a variable, or its default.
func (v variable) value() string { return cmp.Or(os.Getenv(v.name), v.fallback) }
