package diskcache

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/synapse-module/workers/protocol"
)

// rig is a cache and how often something was made for it.
type rig struct {
	*testing.T
	*Cache
	made atomic.Int32
	log  *bytes.Buffer
}

func newRig(t *testing.T, limit int64) *rig {
	t.Helper()
	r := &rig{T: t, log: &bytes.Buffer{}}
	r.Cache = New(filepath.Join(t.TempDir(), "cache"), limit, slog.New(slog.NewTextHandler(r.log, nil)))
	return r
}

// file makes an entry's content a file of text.
func (r *rig) file(text string) func(string) (Content, error) {
	return func(content string) (Content, error) {
		r.made.Add(1)
		if err := os.WriteFile(content, []byte(text), privateFile); err != nil {
			return Content{}, err
		}
		d, err := protocol.FileDigest(strings.NewReader(text))
		return Content{d, int64(len(text))}, err
	}
}

// tree makes it a directory of two files.
func (r *rig) tree(text string) func(string) (Content, error) {
	return func(content string) (Content, error) {
		r.made.Add(1)
		for _, name := range []string{"a", "sub/b"} {
			path := filepath.Join(content, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), privateDir); err != nil {
				return Content{}, err
			}
			if err := os.WriteFile(path, []byte(text), privateFile); err != nil {
				return Content{}, err
			}
		}
		return TreeContent(content)
	}
}

// open opens an entry, which is made n times in all by then.
func (r *rig) open(key string, make func(string) (Content, error), n int32) *Entry {
	r.Helper()
	e, err := r.Open(key, make)
	if err != nil {
		r.Fatal(err)
	}
	if got := r.made.Load(); got != n {
		r.Fatalf("%s: made %d times, want %d", key, got, n)
	}
	return e
}

// use is open and Release.
func (r *rig) use(key string, make func(string) (Content, error), n int32) {
	r.Helper()
	r.open(key, make, n).Release()
}

// names lists the cache but for locks.
func (r *rig) names() []string {
	r.Helper()
	list, err := os.ReadDir(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	var names []string
	for _, d := range list {
		if d.Name() != lockName && !strings.HasSuffix(d.Name(), lockSuffix) {
			names = append(names, d.Name())
		}
	}
	return names
}

// keys are the names without ids.
func (r *rig) keys() []string {
	r.Helper()
	var keys []string
	for _, name := range r.names() {
		key, _, _ := strings.Cut(name, ".")
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (r *rig) wantKeys(want ...string) {
	r.Helper()
	if got := r.keys(); !slices.Equal(got, want) {
		r.Errorf("the cache holds %v, want %v", got, want)
	}
}

func TestMadeOnce(t *testing.T) {
	r := newRig(t, DefaultLimit)
	for range 3 {
		e := r.open("file", r.file("text"), 1)
		if b, err := io.ReadAll(e.File); err != nil || string(b) != "text" || e.Bytes != 4 {
			t.Errorf("the file holds %q (%d bytes), %v", b, e.Bytes, err)
		}
		e.Release()
	}
	for range 3 {
		e := r.open("tree", r.tree("text"), 2)
		if b, err := os.ReadFile(filepath.Join(e.Path, "sub", "b")); err != nil || string(b) != "text" || e.Bytes != 8 || e.File != nil {
			t.Errorf("the tree holds %q (%d bytes), %v", b, e.Bytes, err)
		}
		e.Release()
	}
	r.wantKeys("file", "tree")
	for _, name := range r.names() {
		if info, err := os.Stat(filepath.Join(r.dir, name)); err != nil || info.Mode().Perm() != privateDir {
			t.Errorf("%s has the mode %v, %v", name, info.Mode(), err)
		}
	}
}

// What lies there is hashed at each opening: whatever spoils it is found, and it is
// made anew, in place of what was there.
func TestSpoiltIsMadeAnew(t *testing.T) {
	change := func(path string, f func([]byte) []byte) error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, f(b), privateFile)
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	in := func(names ...string) func(string) string {
		return func(entry string) string { return filepath.Join(append([]string{entry}, names...)...) }
	}
	file, a, record := in(contentName), in(contentName, "a"), in(recordName)
	for name, c := range map[string]struct {
		spoil func(entry string) error
		tree  bool
	}{
		"a flipped bit":           {func(e string) error { return change(file(e), flip) }, false},
		"a flipped bit in a tree": {func(e string) error { return change(a(e), flip) }, true},
		"a byte less":             {func(e string) error { return os.Truncate(file(e), 3) }, false},
		"a byte more":             {func(e string) error { return change(file(e), func(b []byte) []byte { return append(b, 'x') }) }, false},
		"nothing in it":           {func(e string) error { return os.Truncate(file(e), 0) }, false},
		"no content":              {func(e string) error { return os.Remove(file(e)) }, false},
		"no tree":                 {func(e string) error { return os.RemoveAll(file(e)) }, true},
		"a file less":             {func(e string) error { return os.Remove(a(e)) }, true},
		"a file more":             {func(e string) error { return os.WriteFile(a(e)+"a", nil, privateFile) }, true},
		"a symbolic link for a file": {func(e string) error {
			return errors.Join(os.Rename(file(e), file(e)+"x"), os.Symlink(file(e)+"x", file(e)))
		}, false},
		"a symbolic link more": {func(e string) error { return os.Symlink("a", a(e)+"a") }, true},
		"a tree for a file":    {func(e string) error { return errors.Join(os.Remove(file(e)), os.Mkdir(file(e), privateDir)) }, false},
		"no record":            {func(e string) error { return os.Remove(record(e)) }, false},
		"a flipped bit in the record": {func(e string) error {
			return change(record(e), func(b []byte) []byte { return bytes.Replace(b, []byte("sha256:"), []byte("sha257:"), 1) })
		}, false},
		"another size in the record": {func(e string) error {
			return change(record(e), func(b []byte) []byte { return bytes.Replace(b, []byte(`"bytes":8`), []byte(`"bytes":9`), 1) })
		}, true},
		"half a record":       {func(e string) error { return os.Truncate(record(e), 10) }, false},
		"an empty record":     {func(e string) error { return os.Truncate(record(e), 0) }, false},
		"a file in its place": {func(e string) error { return errors.Join(os.RemoveAll(e), os.WriteFile(e, nil, privateFile)) }, false},
		"nothing left":        {func(e string) error { return errors.Join(os.RemoveAll(e), os.Mkdir(e, privateDir)) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, DefaultLimit)
			content := r.file("text")
			if c.tree {
				content = r.tree("text")
			}
			r.use("k", content, 1)
			spoilt := r.names()[0]
			if err := c.spoil(filepath.Join(r.dir, spoilt)); err != nil {
				t.Fatal(err)
			}
			r.use("k", content, 2)
			r.use("k", content, 2)
			if now := r.names(); len(now) != 1 || now[0] == spoilt {
				t.Errorf("the cache held %s and holds %v", spoilt, now)
			}
			if !strings.Contains(r.log.String(), "not what was put there") {
				t.Errorf("the log does not say it: %s", r.log)
			}
		})
	}
}

// A worker that has loaded an entry keeps it, spoilt, old, over the limit or not
// wanted any more.
func TestHeldStays(t *testing.T) {
	r := newRig(t, 0)
	e := r.open("held", r.file("text"), 1)
	held := r.names()[0]
	if err := os.WriteFile(e.Path, []byte("spoilt"), privateFile); err != nil {
		t.Fatal(err)
	}
	r.use("held", r.file("text"), 2)
	r.use("other", r.file("text"), 3)
	r.Drop(func(string) bool { return true })
	if names := r.names(); len(names) != 1 || names[0] != held {
		t.Fatalf("%s is held, the cache holds %v", held, names)
	}
	e.Release()
	r.Drop(func(key string) bool { return key == "held" })
	r.wantKeys()
}

// A file stays readable through its descriptor, whatever becomes of its name.
func TestDescriptorIsTheBytesThatWereHashed(t *testing.T) {
	r := newRig(t, DefaultLimit)
	e := r.open("k", r.file("text"), 1)
	defer e.Release()
	if err := os.Rename(e.Path, e.Path+"x"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(e.Path, []byte("swapped"), privateFile); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(e.File); err != nil || string(b) != "text" {
		t.Errorf("the descriptor gives %q, %v", b, err)
	}
}

// Over the limit the longest unused go, and no more of them than must.
func TestEviction(t *testing.T) {
	r := newRig(t, 20)
	for i, key := range []string{"a", "b", "c", "d"} {
		r.use(key, r.file("1234"), int32(i+1))
	}
	r.age("a", 1)
	r.age("b", 4)
	r.age("c", 3)
	r.age("d", 2)
	r.use("b", r.file("1234"), 4)     // the oldest no more
	r.use("e", r.file("12345678"), 5) // 24 of 20: c goes
	r.wantKeys("a", "b", "d", "e")
	held := r.open("d", r.file("1234"), 5)
	r.age("d", 9)
	r.use("f", r.file("1234567"), 6) // 27 of 20: d is held, a and b go
	r.wantKeys("d", "e", "f")
	held.Release()
}

// age makes the last use of a key's entry so many hours ago.
func (r *rig) age(key string, hours int) {
	r.Helper()
	all, err := r.entries()
	if err != nil {
		r.Fatal(err)
	}
	for _, it := range all {
		if it.key == key {
			then := time.Now().Add(-time.Duration(hours) * time.Hour)
			if err := os.Chtimes(r.lockOf(it.id).Path(), then, then); err != nil {
				r.Fatal(err)
			}
		}
	}
}

// Workers that make the same at once all serve one entry.
func TestAtOnce(t *testing.T) {
	r := newRig(t, DefaultLimit)
	const workers = 8
	var ready, done sync.WaitGroup
	ready.Add(workers)
	entries := make([]*Entry, workers)
	for i := range workers {
		done.Go(func() {
			other := New(r.dir, DefaultLimit, slog.New(slog.DiscardHandler)) // as another process has
			e, err := other.Open("k", func(content string) (Content, error) {
				ready.Done()
				ready.Wait() // all are making it
				return r.tree("text")(content)
			})
			if err != nil {
				t.Error(err)
				return
			}
			entries[i] = e
		})
	}
	done.Wait()
	if t.Failed() {
		return
	}
	for _, e := range entries {
		if e.Path != entries[0].Path {
			t.Errorf("%s and %s are served", e.Path, entries[0].Path)
		}
		e.Release()
	}
	if names := r.names(); len(names) != 1 {
		t.Errorf("the cache holds %v", names)
	}
}

// What a maker fails with comes through, and nothing of it is left.
func TestFailingMaker(t *testing.T) {
	r := newRig(t, DefaultLimit)
	broken := errors.New("broken")
	_, err := r.Open("k", func(content string) (Content, error) {
		if _, err := r.tree("half")(content); err != nil {
			return Content{}, err
		}
		return Content{}, broken
	})
	if err != broken { //nolint:errorlint // as it is
		t.Errorf("got %v", err)
	}
	r.wantKeys()
	var refusal *protocol.Error
	_, err = r.Open("k", func(content string) (Content, error) {
		c, err := r.file("text")(content)
		c.Bytes++ // the disk gives back something else than was written
		return c, err
	})
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeEngineFailed || !strings.Contains(refusal.Msg, "read back otherwise") {
		t.Errorf("got %v", err)
	}
	r.wantKeys()
}

// What a killed worker left goes: its locks have ended with it. What a live one is
// making stays, and so does what nobody here has made.
func TestLeftovers(t *testing.T) {
	r := newRig(t, DefaultLimit)
	private, err := r.Private()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{makingPrefix + "dead", gonePrefix + "half", "strange"} {
		if err := os.MkdirAll(filepath.Join(r.dir, dir, "half"), privateDir); err != nil {
			t.Fatal(err)
		}
	}
	for _, lock := range []string{"dead", "nothing"} {
		if err := os.WriteFile(filepath.Join(r.dir, lock+lockSuffix), nil, privateFile); err != nil {
			t.Fatal(err)
		}
	}
	r.use("k", r.file("text"), 1)
	want := []string{"k", filepath.Base(private.Dir), "strange"}
	r.wantKeys(want...)
	locks, err := filepath.Glob(filepath.Join(r.dir, "*"+lockSuffix))
	if err != nil || len(locks) != 2 {
		t.Errorf("locks are %v, %v", locks, err)
	}
	private.Release()
	r.wantKeys("k", "strange")
}

// An entry that has lost its record goes with the next that is made.
func TestEntryWithoutRecord(t *testing.T) {
	r := newRig(t, DefaultLimit)
	r.use("lost", r.file("text"), 1)
	if err := os.Remove(filepath.Join(r.dir, r.names()[0], recordName)); err != nil {
		t.Fatal(err)
	}
	r.use("k", r.file("text"), 2)
	r.wantKeys("k")
}

// A cache that cannot be written to is no fault of the artifact, and what it has
// still serves.
func TestCacheThatCannotBeUsed(t *testing.T) {
	failed := func(t *testing.T, err error, says string) {
		t.Helper()
		var refusal *protocol.Error
		if !errors.As(err, &refusal) || refusal.Code != protocol.CodeEngineFailed || !strings.Contains(refusal.Msg, says) || !strings.Contains(refusal.Msg, "--cache-dir") {
			t.Errorf("got %v, want engine_failed that says %q", err, says)
		}
	}
	t.Run("a file in its place", func(t *testing.T) {
		r := newRig(t, DefaultLimit)
		if err := os.WriteFile(r.dir, nil, privateFile); err != nil {
			t.Fatal(err)
		}
		_, err := r.Open("k", r.file("text"))
		failed(t, err, "not a directory")
		_, err = r.Private()
		failed(t, err, "not a directory")
	})
	t.Run("others may write", func(t *testing.T) {
		r := newRig(t, DefaultLimit)
		if err := os.Mkdir(r.dir, privateDir); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(r.dir, 0o777); err != nil {
			t.Fatal(err)
		}
		_, err := r.Open("k", r.file("text"))
		failed(t, err, "others may write")
	})
	if os.Geteuid() == 0 { // nobody else can give a directory away
		t.Run("another user's", func(t *testing.T) {
			r := newRig(t, DefaultLimit)
			r.use("k", r.file("text"), 1)
			const somebody = 12345
			if err := os.Chown(r.dir, somebody, somebody); err != nil {
				t.Fatal(err)
			}
			_, err := r.Open("k", r.file("text"))
			failed(t, err, "belongs to the user 12345")
		})
	}
	t.Run("others may write above it, where everybody may", func(t *testing.T) {
		r := newRig(t, DefaultLimit)
		above := filepath.Dir(r.dir)
		if err := os.Chmod(above, 0o775); err != nil {
			t.Fatal(err)
		}
		r.use("k", r.file("text"), 1)
		if err := os.Chmod(filepath.Dir(above), 0o777); err != nil {
			t.Fatal(err)
		}
		_, err := r.Open("k", r.file("text"))
		failed(t, err, "others may write into "+above)
	})
}
