// Package diskcache keeps what is made of artifacts (unpacked files, compiled
// models) from one load to the next, for all workers of a user at once:
//
//	lock               held for moments, while names change
//	ID.lock            held by whoever makes or uses the entry ID; its time is the last use
//	making-ID/         of a worker that lives, or has been killed
//	KEY.ID/content     a file or a directory
//	KEY.ID/record      its digest and size
//	gone-ID/           being removed
//
// An entry appears whole or not at all, by one rename, and is never written after
// that. Whoever opens it hashes what lies there, each time, and holds its lock until
// nothing uses it any more: what spoils on the disk is found and made anew, and
// what a worker has loaded is never removed under it. The kernel ends the locks
// of a killed process, so what it left is known and swept by the next.
//
// The directory is the user's alone. A process of the same user can change an entry
// together with its record; such processes are not kept apart (SECURITY.md).
package diskcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/synapse-module/workers/internal/regular"
	"github.com/synapse-module/workers/protocol"
)

// DefaultLimit is what a cache may take on disk: several models of eight billion
// parameters at four to eight bits each.
const DefaultLimit int64 = 32 << 30

// Modes of what lies in a cache: nobody else may read weights or swap them.
const (
	privateDir  fs.FileMode = 0o700
	privateFile fs.FileMode = 0o600
)

// Cache is a directory of entries. Processes and goroutines may share one.
type Cache struct {
	dir   string
	limit int64
	log   *slog.Logger
}

// New names a cache, whose directory is made when it is first needed. Over limit
// bytes the entries go that have not been used for longest.
func New(dir string, limit int64, log *slog.Logger) *Cache {
	return &Cache{dir: dir, limit: limit, log: log}
}

// Content says what a maker has written.
type Content struct {
	Digest protocol.Digest `json:"digest"` // of the bytes as they were written: a file's or a tree's
	Bytes  int64           `json:"bytes"`  // of all files
}

// Entry is content that was hashed and that stays until it is released.
type Entry struct {
	Path  string   // of the file or directory
	File  *os.File // the descriptor through which a file was hashed; nil for a directory
	Bytes int64    // of all files

	held *item
}

// Release lets the entry go. It is called once.
func (e *Entry) Release() {
	if e.File != nil {
		e.File.Close()
	}
	e.held.release()
}

// Open returns what the cache has under key, after hashing it. Where it has
// nothing, or what it has is not what was put there, make is called with a path that
// does not exist yet and writes the content there; it is called again where the
// disk was full and something could be removed. Workers that make the same at once
// all serve what the first of them has put there. An error of make's is returned
// as it is, any other is an engine_failed of the cache's.
func (c *Cache) Open(key string, make func(content string) (Content, error)) (*Entry, error) {
	spoilt := map[string]bool{}
	if e, err := c.find(key, spoilt); e != nil || err != nil {
		return e, err
	}
	m, err := c.made(make)
	if errors.Is(err, diskFull) && c.drop(func(*item) bool { return true }) > 0 {
		m, err = c.made(make)
	}
	if err != nil {
		return nil, err
	}
	for {
		it, err := c.publish(m, key, spoilt)
		if err != nil {
			c.abandon(m)
			return nil, c.Failed(err)
		}
		e, err := it.verified()
		switch {
		case err == nil && it != m: // another worker was quicker
			c.abandon(m)
			return e, nil
		case err == nil:
			return e, nil
		}
		c.spoilt(it, err)
		spoilt[it.id] = true
		if it == m {
			return nil, c.Failed(fmt.Errorf("what was written is read back otherwise: %w", err))
		}
	}
}

// made is an entry that is whole and has no name yet.
func (c *Cache) made(make func(content string) (Content, error)) (*item, error) {
	m, err := c.begin()
	if err != nil {
		return nil, err
	}
	content, err := make(filepath.Join(m.dir, contentName))
	if err == nil {
		if err = m.record(content); err != nil {
			err = c.Failed(err)
		}
	}
	if err != nil {
		c.abandon(m)
		return nil, err
	}
	return m, nil
}

// find returns the first entry of key that is what was put there, or nil.
func (c *Cache) find(key string, spoilt map[string]bool) (*Entry, error) {
	for {
		var it *item
		err := c.locked(func() (err error) {
			it, err = c.take(key, spoilt)
			return err
		})
		if err != nil {
			return nil, c.Failed(err)
		}
		if it == nil {
			return nil, nil
		}
		e, err := it.verified()
		if err == nil {
			return e, nil
		}
		c.spoilt(it, err)
		spoilt[it.id] = true
	}
}

// spoilt removes an entry whose bytes are not those that were put there, unless
// another worker has loaded it.
func (c *Cache) spoilt(it *item, why error) {
	c.log.Warn("what lies in the cache is not what was put there; making it anew", "entry", it.dir, "error", why)
	it.release()
	c.drop(func(other *item) bool { return other.id == it.id })
}

// Private is a directory for one load's copies. It is in no later worker's way:
// what a killed one left goes.
type Private struct {
	Dir string

	c *Cache
	m *item
}

// Private makes an empty directory that only this load knows.
func (c *Cache) Private() (*Private, error) {
	m, err := c.begin()
	if err != nil {
		return nil, err
	}
	return &Private{m.dir, c, m}, nil
}

// Release removes the directory. It is called once.
func (p *Private) Release() { p.c.abandon(p.m) }

// Drop removes the entries whose keys match and that nobody holds.
func (c *Cache) Drop(match func(key string) bool) {
	c.drop(func(it *item) bool { return match(it.key) })
}

// Failed makes an error of the cache itself, an engine_failed: it is no fault of an
// artifact.
func (c *Cache) Failed(err error) error {
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		return err // it says so already
	}
	return &failure{protocol.Errorf(protocol.CodeEngineFailed, "the cache in %s cannot be used: %v; it must be this user's own directory and have room: see to that, or name another with --cache-dir; where it was removed under this worker, start a new one", c.dir, err), err}
}

// failure is a refusal that its cause can be found in.
type failure struct {
	refusal *protocol.Error
	cause   error
}

func (f *failure) Error() string   { return f.refusal.Error() }
func (f *failure) Unwrap() []error { return []error{f.refusal, f.cause} }

// Names in an entry.
const (
	contentName = "content"
	recordName  = "record"
)

// maxRecordBytes is far over any record: a file that is longer is none.
const maxRecordBytes = 4 << 10

// item is an entry whose lock this process holds.
type item struct {
	id, key, dir string
	lock         *flock.Flock
}

func (it *item) release() {
	if it.lock != nil {
		it.lock.Unlock() //nolint:errcheck // closing its file ends the lock in any case
	}
}

func (it *item) record(c Content) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(it.dir, recordName), b, privateFile)
}

// readRecord is what the maker of an entry in dir said of it.
func readRecord(dir string) (c Content, err error) {
	f, err := regular.Open(filepath.Join(dir, recordName))
	if err != nil {
		return c, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRecordBytes))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil {
		return c, fmt.Errorf("its record: %w", err)
	}
	_, err = protocol.ParseDigest(string(c.Digest))
	return c, err
}

// verified hashes what lies there and compares it with the record.
func (it *item) verified() (*Entry, error) {
	want, err := readRecord(it.dir)
	if err != nil {
		return nil, err
	}
	e := &Entry{Path: filepath.Join(it.dir, contentName), held: it}
	var got Content
	if want.Digest.IsTree() {
		got, err = TreeContent(e.Path)
	} else {
		got, err = e.open(it.dir)
	}
	if err == nil && got != want {
		err = fmt.Errorf("its digest is %s (%d bytes), it was %s (%d bytes)", got.Digest, got.Bytes, want.Digest, want.Bytes)
	}
	if err != nil {
		if e.File != nil {
			e.File.Close()
		}
		return nil, err
	}
	e.Bytes = got.Bytes
	return e, nil
}

// TreeContent hashes a directory, for makers that are not told what is written.
func TreeContent(dir string) (c Content, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c, err
	}
	defer root.Close()
	c.Digest, err = protocol.TreeDigest(regular.FS(root), func(string) (io.WriteCloser, error) { return (*counter)(&c.Bytes), nil })
	return c, err
}

// open opens and hashes the file of an entry in dir.
func (e *Entry) open(dir string) (c Content, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return c, err
	}
	defer root.Close()
	if e.File, err = regular.OpenIn(root, contentName); err != nil {
		return c, err
	}
	if c.Digest, err = protocol.FileDigest(e.File); err != nil {
		return c, err
	}
	if c.Bytes, err = e.File.Seek(0, io.SeekCurrent); err != nil {
		return c, err
	}
	_, err = e.File.Seek(0, io.SeekStart)
	return c, err
}

// counter adds up what is written to it.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
}

func (n *counter) Close() error { return nil }
