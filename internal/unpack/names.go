package unpack

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// names are an archive's paths so far, by what they are where capitals and
// composed letters make no difference. An archive that such a file system
// unpacks to something else is refused everywhere.
type names map[string]node

type node struct {
	name      string // as the archive writes it
	directory bool
}

// add notes a path and the directories over it.
func (n names) add(name string, directory bool) error {
	if err := check(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if err := n.note(dir, true); err != nil {
			return err
		}
	}
	return n.note(name, directory)
}

func (n names) note(name string, directory bool) error {
	key := norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
	had, ok := n[key]
	switch {
	case !ok:
		n[key] = node{name, directory}
		return nil
	case had.name != name:
		return fmt.Errorf("the archive holds %.128q and %.128q, which are one name on some systems", had.name, name)
	case had.directory && directory:
		return nil // said again, it adds nothing
	}
	return fmt.Errorf("the archive holds %.128q twice", name)
}

// check refuses names that lead out of the directory, that a tree digest cannot
// hold, or that are too long for a file system.
func check(name string) error {
	if len(name) > maxPathBytes {
		return fmt.Errorf("the archive holds a name of %d bytes, the longest allowed has %d: %.128q…", len(name), maxPathBytes, name)
	}
	if !fs.ValidPath(name) || name == "." {
		return fmt.Errorf("the archive holds the name %q; allowed are paths in UTF-8 without .., without . and not absolute", name)
	}
	if strings.ContainsAny(name, "\x00\n\r\\") {
		return fmt.Errorf("the archive holds the name %q with a newline, carriage return, backslash or NUL", name)
	}
	if strings.Count(name, "/") > maxDepth {
		return fmt.Errorf("the archive holds the name %q under more than %d directories", name, maxDepth)
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxNameBytes {
			return fmt.Errorf("the archive holds the name %.128q… of %d bytes, the longest allowed has %d", part, len(part), maxNameBytes)
		}
	}
	return nil
}
