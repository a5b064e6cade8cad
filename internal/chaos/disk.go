//go:build linux

package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/synapse-module/workers/engines/fake"
	"github.com/synapse-module/workers/host"
	"github.com/synapse-module/workers/protocol"
)

const (
	// diskBytes is the least that a tmpfs has: one page for each of a few files.
	diskBytes = 64 << 10

	// copiedBytes is more than such a disk takes.
	copiedBytes = 1 << 20
)

// fullDiskAt mounts a disk at dir that is full as soon as anything is written. It
// returns "" where this user may not mount.
func fullDiskAt(dir string) (string, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, fmt.Sprintf("size=%d,mode=0700", diskBytes))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return "", nil
	}
	return dir, err
}

// treeModel is a model in a directory, larger than the full disk.
func treeModel(dir string) (host.LoadRequest, error) {
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o700); err != nil {
		return host.LoadRequest{}, err
	}
	if err := os.WriteFile(filepath.Join(tree, "weights"), make([]byte, copiedBytes), 0o600); err != nil {
		return host.LoadRequest{}, err
	}
	digest, err := protocol.TreeDigest(os.DirFS(tree), nil)
	return host.LoadRequest{Path: tree, Digest: digest, Format: fake.Format}, err
}

// packedModel is a compressed model, larger than the full disk once it is unpacked.
func packedModel(dir string) (host.LoadRequest, error) {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		return host.LoadRequest{}, err
	}
	defer w.Close()
	packed := w.EncodeAll(append([]byte(fake.Magic+"\n"), make([]byte, copiedBytes)...), nil)
	path := filepath.Join(dir, "model.fake.zst")
	if err := os.WriteFile(path, packed, 0o600); err != nil {
		return host.LoadRequest{}, err
	}
	digest, err := protocol.FileDigest(bytes.NewReader(packed))
	return host.LoadRequest{Path: path, Digest: digest, Format: fake.Format + "+zstd"}, err
}
