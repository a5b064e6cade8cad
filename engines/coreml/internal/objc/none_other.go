//go:build !darwin && !linux

package objc

import "errors"

// Open fails: there is no Core ML here.
func Open(string) (Runtime, error) {
	return nil, errors.New("there is no Core ML on this system: run worker-ane on a Mac with macOS 13 or later")
}
