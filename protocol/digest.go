package protocol

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// The two kinds of digest: of a file's bytes, and of a directory's files.
const (
	fileScheme = "sha256:"
	treeScheme = "sha256-tree:"
)

// Digest names the bytes of an artifact: "sha256:" or "sha256-tree:" and 64
// lower-case hex digits.
//
// A tree digest is the SHA-256 of one line a file, "<sha256 of the file, hex>
// <two spaces> <path from the root>\n", sorted by path as bytes: what
//
//	find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
//
// prints with the leading "./" removed, and what Go's dirhash.Hash1 hashes.
type Digest string

// ParseDigest checks the form of s.
func ParseDigest(s string) (Digest, error) {
	digits, ok := strings.CutPrefix(s, fileScheme)
	if !ok {
		digits, ok = strings.CutPrefix(s, treeScheme)
	}
	if !ok {
		return "", Errorf(CodeRequestInvalid, "digest %q begins with neither %q nor %q", clip(s), fileScheme, treeScheme)
	}
	if len(digits) != hex.EncodedLen(sha256.Size) || strings.Trim(digits, "0123456789abcdef") != "" {
		return "", Errorf(CodeRequestInvalid, "digest %q does not end in %d lower-case hex digits", clip(s), hex.EncodedLen(sha256.Size))
	}
	return Digest(s), nil
}

// IsTree says that the digest is a directory's.
func (d Digest) IsTree() bool { return strings.HasPrefix(string(d), treeScheme) }

// Hex is the digest without its scheme.
func (d Digest) Hex() string { return string(d[strings.IndexByte(string(d), ':')+1:]) }

// FileDigest reads r to its end.
func FileDigest(r io.Reader) (Digest, error) {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return "", fmt.Errorf("hash: %w", err)
	}
	return Digest(fileScheme + hex.EncodeToString(h.Sum(nil))), nil
}

// TreeDigest hashes all files under fsys. tee, where it is not nil, is given
// each file's name and returns where the very bytes that are hashed go as well,
// so that a copy is what the digest says. Anything but directories and regular
// files, an empty tree, and a name that the two definitions of a tree digest
// write differently (a newline, carriage return or backslash) is refused.
func TreeDigest(fsys fs.FS, tee func(name string) (io.WriteCloser, error)) (Digest, error) {
	var files []string
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			return fmt.Errorf("%q is a %s; only directories and regular files are allowed", name, kindOf(d.Type()))
		case strings.ContainsAny(name, "\n\r\\"):
			return fmt.Errorf("the file name %q holds a newline, carriage return or backslash", name)
		}
		files = append(files, name)
		return nil
	})
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", fmt.Errorf("the directory holds no file")
	}
	digests := make(map[string]Digest, len(files))
	for _, name := range files {
		if digests[name], err = digestIn(fsys, name, tee); err != nil {
			return "", err
		}
	}
	return TreeDigestOf(digests), nil
}

// digestIn hashes one file of a tree.
func digestIn(fsys fs.FS, name string, tee func(name string) (io.WriteCloser, error)) (d Digest, err error) {
	f, err := fsys.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%q has become a %s since the directory was listed", name, kindOf(info.Mode()))
	case tee == nil:
		return FileDigest(f)
	}
	w, err := tee(name)
	if err != nil {
		return "", err
	}
	defer func() {
		if closing := w.Close(); closing != nil && err == nil { // it did not reach its disk
			d, err = "", fmt.Errorf("the private copy: %w", closing)
		}
	}()
	return FileDigest(io.TeeReader(f, w))
}

// TreeDigestOf is the tree digest of files whose digests are known, by their
// paths.
func TreeDigestOf(files map[string]Digest) Digest {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(h, "%s  %s\n", files[name].Hex(), name)
	}
	return Digest(treeScheme + hex.EncodeToString(h.Sum(nil)))
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "special file"
}
