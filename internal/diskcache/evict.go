package diskcache

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sweep puts aside what processes that are gone have left: directories in the making
// whose lock nobody holds, and locks of nothing. What it returns can be removed
// when the cache is no longer locked.
func (c *Cache) sweep() (gone []string) {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return nil // what follows will say it
	}
	ids := map[string]bool{} // of what is there
	for _, d := range list {
		name := d.Name()
		switch {
		case strings.HasPrefix(name, gonePrefix):
			gone = append(gone, filepath.Join(c.dir, name))
		case strings.HasPrefix(name, makingPrefix):
			it := &item{id: strings.TrimPrefix(name, makingPrefix), dir: filepath.Join(c.dir, name)}
			if aside := c.putAside(it); aside != "" {
				c.log.Info("removing what a killed worker left in the cache", "directory", it.dir)
				gone = append(gone, aside)
			} else {
				ids[it.id] = true
			}
		case !strings.HasSuffix(name, lockSuffix):
			ids[name[strings.LastIndexByte(name, '.')+1:]] = true
		}
	}
	for _, d := range list {
		if id, ok := strings.CutSuffix(d.Name(), lockSuffix); ok && !ids[id] {
			os.Remove(filepath.Join(c.dir, d.Name()))
		}
	}
	return gone
}

// putAside renames an entry that nobody holds, so that it is none any more, and
// returns its new path; empty where somebody holds it. The cache is locked.
func (c *Cache) putAside(it *item) string {
	lock := c.lockOf(it.id)
	if taken, err := lock.TryLock(); err != nil || !taken {
		return ""
	}
	defer lock.Unlock() //nolint:errcheck // closing its file ends the lock in any case
	aside := filepath.Join(c.dir, gonePrefix+it.id)
	if os.Rename(it.dir, aside) != nil {
		return ""
	}
	os.Remove(lock.Path()) // where an open file cannot be removed, the next sweep does
	return aside
}

func remove(dirs []string) {
	for _, dir := range dirs {
		os.RemoveAll(dir)
	}
}

// drop removes entries that nobody holds, and says how many.
func (c *Cache) drop(match func(*item) bool) int {
	var gone []string
	err := c.locked(func() error {
		all, err := c.entries()
		for _, it := range all {
			if !match(it) {
				continue
			}
			if aside := c.putAside(it); aside != "" {
				c.log.Info("removing from the cache", "entry", it.dir)
				gone = append(gone, aside)
			}
		}
		return err
	})
	if err != nil {
		c.log.Warn("the cache cannot be cleaned up", "directory", c.dir, "error", err)
	}
	remove(gone)
	return len(gone)
}

// evict puts aside what was not used for longest, until the rest is within the
// limit or held, and what has lost its record. The cache is locked.
func (c *Cache) evict() (gone []string) {
	type aged struct {
		*item
		bytes int64
		used  time.Time
	}
	all, err := c.entries()
	if err != nil {
		return nil // the next one sees to it
	}
	var total int64
	var byAge []aged
	for _, it := range all {
		content, err := readRecord(it.dir)
		if err != nil {
			if aside := c.putAside(it); aside != "" {
				gone = append(gone, aside)
			}
			continue
		}
		a := aged{item: it, bytes: content.Bytes}
		if info, err := os.Stat(c.lockOf(it.id).Path()); err == nil {
			a.used = info.ModTime()
		}
		total += a.bytes
		byAge = append(byAge, a)
	}
	slices.SortFunc(byAge, func(x, y aged) int { return x.used.Compare(y.used) })
	for _, a := range byAge {
		if total <= c.limit {
			break
		}
		if aside := c.putAside(a.item); aside != "" {
			c.log.Info("removing from the cache what was not used for longest", "entry", a.dir, "bytes", a.bytes, "used", a.used)
			gone = append(gone, aside)
			total -= a.bytes
		}
	}
	return gone
}
