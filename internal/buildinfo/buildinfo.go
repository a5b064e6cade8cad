// Package buildinfo says which release a binary is of.
package buildinfo

import "runtime/debug"

// A release sets both when it links: the tag without its v, and the full hash of
// the commit.
var version, commit string

// Version is the release's version; of a build that is none, what the Go command
// knows, or "devel".
func Version() string {
	if version != "" {
		return version
	}
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "devel"
}

// Commit is the commit that the release was built from, empty where the binary
// does not know.
func Commit() string {
	if commit != "" {
		return commit
	}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}

// String is the version, with the commit after it where that is known.
func String() string {
	if c := Commit(); c != "" {
		return Version() + " (" + c + ")"
	}
	return Version()
}
