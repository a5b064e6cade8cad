package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// sameCmd proves that a release can be built again. What differs is named down to
// the file in an archive, which is where a search for the cause begins.
type sameCmd struct {
	A string `arg:"" help:"goreleaser's folder of one build."`
	B string `arg:"" help:"That of another build of the same commit."`
}

func (c sameCmd) Run() error {
	r, err := openRelease(".")
	if err != nil {
		return err
	}
	a, err := r.archives(c.A)
	if err != nil {
		return err
	}
	b, err := r.archives(c.B)
	if err != nil {
		return err
	}
	var faults []error
	for i := range a {
		faults = append(faults, same(a[i].path, b[i].path))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	fmt.Printf("%d archives are byte-equal in both builds\n", len(a))
	return nil
}

// same compares two archives, and their entries where they differ.
func same(a, b string) error {
	rawA, err := os.ReadFile(a)
	if err != nil {
		return err
	}
	rawB, err := os.ReadFile(b)
	if err != nil {
		return err
	}
	if filepath.Base(a) != filepath.Base(b) {
		return fmt.Errorf("%s and %s are named differently", a, b)
	}
	sumA, sumB := sumOf(rawA), sumOf(rawB)
	if sumA == sumB {
		fmt.Printf("%s  %s\n", sumA, filepath.Base(a))
		return nil
	}
	entriesA, err := digests(a)
	if err != nil {
		return err
	}
	entriesB, err := digests(b)
	if err != nil {
		return err
	}
	var differ []string
	for name, sum := range entriesA {
		if entriesB[name] != sum {
			differ = append(differ, name)
		}
	}
	return fmt.Errorf("%s is not the same in both builds: %s and %s; entries that differ: %v (none: their order, times or modes do)", filepath.Base(a), sumA, sumB, differ)
}

func digests(archive string) (map[string]string, error) {
	all := map[string]string{}
	err := entries(archive, func(name string, _ fs.FileMode, r io.Reader) error {
		raw, err := io.ReadAll(r)
		all[name] = sumOf(raw)
		return err
	})
	return all, err
}
