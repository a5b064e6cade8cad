// Package regular opens files that must be regular ones without waiting: a name
// that was looked at and has become a named pipe since must not hang whoever opens
// it.
package regular

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Open opens the regular file of that name for reading.
func Open(name string) (*os.File, error) {
	return checked(os.OpenFile(name, os.O_RDONLY|nonblock, 0))
}

// OpenIn is [Open] for a name in root, which no link in it leads out of.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return checked(root.OpenFile(name, os.O_RDONLY|nonblock, 0))
}

func checked(f *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// FS is root.FS, but that its Open does not wait. It opens directories too, and
// leaves it to the caller to look at what it has opened.
func FS(root *os.Root) fs.FS { return rootFS{root} }

type rootFS struct{ root *os.Root }

func (r rootFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return r.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|nonblock, 0)
}
