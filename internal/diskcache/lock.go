package diskcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	// lockPatience bounds the wait for the lock on the cache's names. It is held for
	// as long as it takes to list and rename: after a minute its holder is stopped,
	// or the file system has no locks that work.
	lockPatience = time.Minute

	// lockPoll is how often the lock is tried meanwhile.
	lockPoll = 10 * time.Millisecond
)

// Names in a cache.
const (
	lockName     = "lock"
	lockSuffix   = ".lock"
	makingPrefix = "making-"
	gonePrefix   = "gone-"
)

// locked calls f while no other worker changes names in the cache.
func (c *Cache) locked(f func() error) error {
	if err := c.prepare(); err != nil {
		return err
	}
	l := newLock(filepath.Join(c.dir, lockName))
	ctx, cancel := context.WithTimeout(context.Background(), lockPatience)
	defer cancel()
	_, err := l.TryLockContext(ctx, lockPoll)
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("another process has held %s for %v: is one stopped?", l.Path(), lockPatience)
	}
	if err != nil {
		return fmt.Errorf("its lock: %w", err)
	}
	defer l.Unlock() //nolint:errcheck // closing its file ends the lock in any case
	return f()
}

// prepare makes the directory, and sees that nobody else can put entries there.
func (c *Cache) prepare() error {
	if err := os.MkdirAll(c.dir, privateDir); err != nil {
		return err
	}
	if err := mineAlone(c.dir); err != nil {
		return err
	}
	// Where everybody may write, as in a directory for temporary files, the name above
	// can have been taken by another user.
	if above := filepath.Dir(c.dir); everybodyWrites(filepath.Dir(above)) {
		return mineAlone(above)
	}
	return nil
}

func newLock(path string) *flock.Flock {
	// Opened for reading, so that what lies on a read-only disk can be held too.
	return flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDONLY|noWait), flock.SetPermissions(privateFile))
}

func (c *Cache) lockOf(id string) *flock.Flock {
	return newLock(filepath.Join(c.dir, id+lockSuffix))
}

// begin makes an empty directory that is this process's while it holds its lock,
// and sweeps what killed processes have left.
func (c *Cache) begin() (*item, error) {
	m := &item{id: fmt.Sprintf("%016x", rand.Uint64())}
	m.dir = filepath.Join(c.dir, makingPrefix+m.id)
	var gone []string
	err := c.locked(func() (err error) {
		gone = c.sweep()
		m.lock = c.lockOf(m.id)
		if taken, err := m.lock.TryLock(); err != nil || !taken {
			return fmt.Errorf("the lock of a new entry: %w", cmp.Or(err, os.ErrExist))
		}
		if err := os.Mkdir(m.dir, privateDir); err != nil {
			os.Remove(m.lock.Path())
			m.release()
			return err
		}
		return nil
	})
	remove(gone)
	if err != nil {
		return nil, c.Failed(err)
	}
	return m, nil
}

// abandon removes what begin made, and nobody has seen.
func (c *Cache) abandon(m *item) {
	os.RemoveAll(m.dir)
	os.Remove(m.lock.Path())
	m.release()
}

// take holds the first entry of key that is not known to be spoilt; nil where
// there is none. The cache is locked.
func (c *Cache) take(key string, spoilt map[string]bool) (*item, error) {
	all, err := c.entries()
	if err != nil {
		return nil, err
	}
	for _, it := range all {
		if it.key != key || spoilt[it.id] {
			continue
		}
		it.lock = c.lockOf(it.id)
		taken, err := it.lock.TryRLock()
		if err != nil {
			return nil, fmt.Errorf("the lock of %s: %w", it.dir, err)
		}
		if taken { // it is not where its maker holds it, which no entry's does
			it.touch()
			return it, nil
		}
	}
	return nil, nil
}

// touch notes that the entry was used now. A cache that cannot be written to is
// still of use.
func (it *item) touch() {
	now := time.Now()
	_ = os.Chtimes(it.lock.Path(), now, now)
}

// publish gives m its name, or returns the entry of that key which another worker
// has published meanwhile.
func (c *Cache) publish(m *item, key string, spoilt map[string]bool) (published *item, err error) {
	var gone []string
	err = c.locked(func() error {
		other, err := c.take(key, spoilt)
		if other != nil || err != nil {
			published = other
			return err
		}
		named := filepath.Join(c.dir, key+"."+m.id)
		if err := os.Rename(m.dir, named); err != nil {
			return err
		}
		m.key, m.dir, published = key, named, m
		// From a lock of its own to one that others can share: nobody takes either
		// while the cache is locked.
		if err := m.lock.Unlock(); err != nil {
			return err
		}
		if taken, err := m.lock.TryRLock(); err != nil || !taken {
			return fmt.Errorf("the lock of %s: %w", named, cmp.Or(err, os.ErrExist))
		}
		m.touch()
		gone = c.evict()
		return nil
	})
	remove(gone)
	return published, err
}

// entries lists what is whole. The cache is locked.
func (c *Cache) entries() ([]*item, error) {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, err
	}
	var all []*item
	for _, d := range list {
		dot := strings.LastIndexByte(d.Name(), '.')
		if dot < 0 || strings.HasSuffix(d.Name(), lockSuffix) || strings.HasPrefix(d.Name(), makingPrefix) || strings.HasPrefix(d.Name(), gonePrefix) {
			continue
		}
		all = append(all, &item{key: d.Name()[:dot], id: d.Name()[dot+1:], dir: filepath.Join(c.dir, d.Name())})
	}
	return all, nil
}
