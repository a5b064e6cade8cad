package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Modes that a read-only installation has.
const (
	readOnlyDir  fs.FileMode = 0o555
	readOnlyFile fs.FileMode = 0o444
	readOnlyExe  fs.FileMode = 0o555
)

// unpack puts an archive into dir, an empty directory, and returns its files'
// names in order. Whatever is no regular file is an error: the layout needs no
// links, and not every system unpacks them.
func unpack(archive, dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var names []string
	err = entries(archive, func(name string, mode fs.FileMode, r io.Reader) error {
		if !mode.IsRegular() {
			return fmt.Errorf("%s: %s is a %s", archive, name, mode.Type())
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		perm := readOnlyFile
		if mode&0o111 != 0 {
			perm = readOnlyExe
		}
		w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, r)
		names = append(names, name)
		return errors.Join(err, w.Close())
	})
	return names, err
}

// entries calls visit for each entry of a .zip or .tar.gz.
func entries(archive string, visit func(name string, mode fs.FileMode, r io.Reader) error) error {
	if strings.HasSuffix(archive, ".zip") {
		return zipEntries(archive, visit)
	}
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	t := tar.NewReader(gz)
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
		if err := visit(h.Name, h.FileInfo().Mode(), t); err != nil {
			return err
		}
	}
}

func zipEntries(archive string, visit func(name string, mode fs.FileMode, r io.Reader) error) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("%s: %w", archive, err)
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", archive, f.Name, err)
		}
		err = visit(f.Name, f.Mode(), r)
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// close takes the right to write from every directory under dir.
func closeTree(dir string) error {
	return chmodDirs(dir, readOnlyDir)
}

// remove removes a tree that closeTree has closed.
func removeTree(dir string) error {
	return errors.Join(chmodDirs(dir, 0o755), os.RemoveAll(dir))
}

func chmodDirs(dir string, mode fs.FileMode) error {
	var dirs []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path.Join(dir, name))
		}
		return err
	})
	for _, d := range dirs {
		err = errors.Join(err, os.Chmod(d, mode))
	}
	return err
}
