// Package build is a folder of packages and holds no code. Its packages hold how
// locked entries become artifacts: the engine's process, the run over many entries,
// their results and logs. They do not hold a step of a build: pipelines has them.
package build
