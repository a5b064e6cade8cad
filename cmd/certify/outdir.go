package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/synapse-module/workers/certify"
)

// canWriteTo wants dir, or the directory in which it would be made, to take new
// files, so that a wrong --out is said before an hour is spent on what goes there.
// It leaves nothing behind: a run that is interrupted has no --out.
func canWriteTo(dir string) error {
	if dir == "" {
		return nil
	}
	there, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for {
		_, err = os.Stat(there)
		above := filepath.Dir(there)
		if !errors.Is(err, fs.ErrNotExist) || above == there {
			break
		}
		there = above
	}
	if err == nil {
		var probe string
		if probe, err = os.MkdirTemp(there, ".certify-*"); err == nil {
			return os.Remove(probe)
		}
	}
	return &certify.UsageError{Msg: fmt.Sprintf("--out %s cannot be written: %v", dir, err)}
}
