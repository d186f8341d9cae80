// Package build is a folder of packages and holds no code. Its packages turn locked
// entries into artifacts: they run the engine's process, process many entries, and keep
// results and logs. The steps of a build are in pipelines.
package build
