// Package assets fetches, makes and verifies the native libraries and models
// that the workers run on.
//
// # The lock
//
// assets.lock in the root of the repository names every one of them: where it
// comes from, under which licence, and the SHA-256 of each file. A library also
// names the Go module that it is known to fit, and a lock whose pair is not the
// one in go.mod is refused before anything else is done.
//
// # The store
//
// The assets lie in .assets/ beside the lock, or where SYNAPSE_ASSETS_DIR says:
//
//	NAME/       the files of one asset
//	.cache/     packages as the clients downloaded them, which makes a stopped sync resume
//	.stamps/    for each asset the digest of the lock's entry that it was built from
//	.venv/      the Python environments of the scripts that make assets
//	.tmp/       what is being written; renamed into place when it is whole and verified
//	.lock       held while anything of this is written
//
// Every use hashes every file of the asset, so no date or size is trusted. A
// file that is missing is fetched again; a file whose bytes have changed is an
// error, because only a fault or somebody's hand can have done it.
package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// DirVariable names the environment variable that moves the store.
const DirVariable = "SYNAPSE_ASSETS_DIR"

// Store is the directory of the assets of one repository.
type Store struct {
	root     string // of the repository
	dir      string
	lock     *Lock
	progress *Progress
}

// Open finds the lock in dir or the nearest directory above it, and refuses one
// whose libraries do not fit the bindings in go.mod. It writes nothing.
func Open(dir string, progress *Progress) (*Store, error) {
	root, err := findRoot(dir)
	if err != nil {
		return nil, err
	}
	lock, err := LoadLock(filepath.Join(root, LockName))
	if err != nil {
		return nil, err
	}
	if err := lock.checkBindings(filepath.Join(root, "go.mod")); err != nil {
		return nil, err
	}
	store := filepath.Join(root, ".assets")
	if moved := os.Getenv(DirVariable); moved != "" {
		if store, err = filepath.Abs(moved); err != nil {
			return nil, err
		}
	}
	return &Store{root: root, dir: store, lock: lock, progress: progress}, nil
}

func findRoot(dir string) (string, error) {
	start, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at := start; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, LockName)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no %s in %s or above it: run this inside the repository", LockName, start)
		}
	}
}

// Path returns the absolute path of an asset's main file, verified, and gets
// the asset first where it is missing.
func (s *Store) Path(ctx context.Context, name string) (string, error) {
	a, err := s.lock.find(name)
	if err != nil {
		return "", err
	}
	if err := s.Sync(ctx, name); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, a.Name, filepath.FromSlash(a.Main)), nil
}

// Check hashes an asset's files and says what is missing or changed. It fetches
// nothing.
func (s *Store) Check(name string) error {
	a, err := s.lock.find(name)
	if err != nil {
		return err
	}
	ok, err := s.complete(a)
	if err == nil && !ok {
		return fmt.Errorf("%s is not in the store: run `make assets`", name)
	}
	return err
}

// Dir is the absolute path of the store.
func (s *Store) Dir() string { return s.dir }

// Choose returns the given names, each known to stand in the lock, or those of
// the assets that this platform uses when none is given.
func (s *Store) Choose(names ...string) ([]string, error) {
	if len(names) == 0 {
		for i := range s.lock.Assets {
			if a := &s.lock.Assets[i]; a.here() {
				names = append(names, a.Name)
			}
		}
	}
	for _, name := range names {
		if _, err := s.lock.find(name); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// All returns every name of the lock.
func (s *Store) All() []string {
	names := make([]string, len(s.lock.Assets))
	for i, a := range s.lock.Assets {
		names[i] = a.Name
	}
	return names
}

// Listed is one line of a listing.
type Listed struct {
	Name     string
	Version  Version
	Kind     Kind
	Platform string // GOOS/GOARCH, or empty for any
	Licence  string
	// Present says that the asset was installed from the present entry of the
	// lock; Check says whether its bytes still are what they were.
	Present bool
}

// List tells of every asset of the lock, in its order.
func (s *Store) List() ([]Listed, error) {
	var list []Listed
	for i := range s.lock.Assets {
		a := &s.lock.Assets[i]
		present, err := s.stamped(a)
		if err != nil {
			return nil, err
		}
		kind, _ := a.kind()
		list = append(list, Listed{a.Name, a.Version, kind, a.Platform, a.Licence, present})
	}
	return list, nil
}

// complete says whether an asset is installed as the lock has it, hashing every
// file. A changed byte is a [DigestError]; a missing file is merely incomplete.
func (s *Store) complete(a *Asset) (bool, error) {
	ok, err := s.stamped(a)
	if !ok || err != nil {
		return false, err
	}
	for _, f := range a.Files {
		file := filepath.Join(s.dir, a.Name, filepath.FromSlash(f.Path))
		got, err := fileDigest(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false, nil
		case err != nil:
			return false, err
		case got != f.SHA256:
			return false, &DigestError{
				File: file, Want: f.SHA256, Got: got,
				Next: "it was changed after it was verified; delete it and run `make assets`",
			}
		}
	}
	return true, nil
}

// stamped says whether the asset was installed from the present lock entry.
func (s *Store) stamped(a *Asset) (bool, error) {
	want, err := s.stamp(a)
	if err != nil {
		return false, err
	}
	got, err := os.ReadFile(s.stampFile(a))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(got) == want, err
}

func (s *Store) stampFile(a *Asset) string { return filepath.Join(s.dir, ".stamps", a.Name) }

// stamp is the digest of all that decides an asset's bytes. A made asset's
// includes its script, so that a changed script is run, and held to the lock,
// also where its old output is still there.
func (s *Store) stamp(a *Asset) (string, error) {
	parts := []any{a.Files}
	if a.Made != nil {
		parts = append(parts, a.Made)
		for _, name := range []string{a.Made.Script, a.Made.Requirements} {
			digest, err := fileDigest(filepath.Join(s.root, filepath.FromSlash(name)))
			if err != nil {
				return "", fmt.Errorf("%s: asset %s: %w", LockName, a.Name, err)
			}
			parts = append(parts, digest)
		}
		for _, name := range a.Made.Inputs {
			input, err := s.lock.find(name)
			if err != nil {
				return "", err
			}
			digest, err := s.stamp(input)
			if err != nil {
				return "", err
			}
			parts = append(parts, digest)
		}
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
