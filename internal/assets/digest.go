package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// DigestError says that a file does not hold the bytes that the lock pins.
type DigestError struct {
	File string // as the user can find it
	Want string // SHA-256 of the lock, hex
	Got  string // SHA-256 of the bytes, hex
	// Next says who is at fault and what to do.
	Next string
}

func (e *DigestError) Error() string {
	return fmt.Sprintf("%s has SHA-256 %s, %s pins %s: %s", e.File, e.Got, LockName, e.Want, e.Next)
}

// digestOf reads to the end and returns the SHA-256 in hex.
func digestOf(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// fileDigest is digestOf a file by name.
func fileDigest(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return digestOf(f)
}
