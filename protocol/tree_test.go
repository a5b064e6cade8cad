package protocol_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/mod/sumdb/dirhash"

	"github.com/synapse-module/workers/protocol"
)

// tricky are files whose order and names two definitions may take differently:
// '.' and '-' sort before '/', capitals before small letters, bytes are not
// letters.
var tricky = map[string]string{
	"model.onnx":                "weights",
	"a/b":                       "1",
	"a.b":                       "2",
	"a-b":                       "3",
	"a/b.d/c":                   "",
	"B":                         "4",
	"b":                         "4",
	" lead and trail ":          "5", //nolint:gocritic // the blanks are the point
	"é":                         "6",
	"e\u0301":                   "7",
	"日本":                        "8",
	"tab\there":                 "9",
	".hidden/.file":             "10",
	"-rf":                       "11",
	"*":                         "12",
	"\"'$(x)`":                  "13",
	"Data/com.apple.CoreML/w.b": strings.Repeat("x", 1<<17),
	"\x7f":                      "14",
}

// write makes the files under a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pipeline is the digest's definition, run by the tools that it names.
func pipeline(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sed 's|  \./|  |' | sha256sum`)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return "sha256-tree:" + strings.Fields(string(out))[0]
}

func TestTreeDigestIsTheShellPipeline(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the pipeline is of the GNU tools; dirhash holds the definition elsewhere")
	}
	for name, files := range map[string]map[string]string{
		"tricky":        tricky,
		"one file":      {"model.onnx": "x"},
		"one empty one": {"x": ""},
	} {
		dir := write(t, files)
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		want := pipeline(t, dir)
		for kind, fsys := range map[string]fs.FS{"os.Root": root.FS(), "os.DirFS": os.DirFS(dir)} {
			if d, err := protocol.TreeDigest(fsys, nil); err != nil || string(d) != want || !d.IsTree() {
				t.Errorf("%s, %s: %s, %v, want %s", name, kind, d, err, want)
			}
		}
	}
}

func TestTreeDigestIsDirhash(t *testing.T) {
	dir := write(t, map[string]string{"b/c": "1", "b.c": "2", "B": "3"})
	h1, err := dirhash.HashDir(dir, "", dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(h1, "h1:"))
	if err != nil {
		t.Fatal(err)
	}
	if d, err := protocol.TreeDigest(os.DirFS(dir), nil); err != nil || d.Hex() != hex.EncodeToString(raw) {
		t.Errorf("%s, %v, want %x", d, err, raw)
	}
}

// Directories without files are not in the digest, empty or not.
func TestTreeDigestIgnoresEmptyDirectories(t *testing.T) {
	files := fstest.MapFS{"a/f": {Data: []byte("x")}}
	want, err := protocol.TreeDigest(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	files["b/c"] = &fstest.MapFile{Mode: fs.ModeDir}
	if got, err := protocol.TreeDigest(files, nil); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestTreeDigestChangesWithEverything(t *testing.T) {
	seen := map[protocol.Digest]string{}
	for name, files := range map[string]fstest.MapFS{
		"base":             {"a": {Data: []byte("1")}, "b": {Data: []byte("2")}},
		"contents swapped": {"a": {Data: []byte("2")}, "b": {Data: []byte("1")}},
		"renamed":          {"a": {Data: []byte("1")}, "c": {Data: []byte("2")}},
		"moved":            {"a": {Data: []byte("1")}, "d/b": {Data: []byte("2")}},
		"one more, empty":  {"a": {Data: []byte("1")}, "b": {Data: []byte("2")}, "c": {}},
		"one less":         {"a": {Data: []byte("1")}},
		"one bit":          {"a": {Data: []byte("0")}, "b": {Data: []byte("2")}},
	} {
		d, err := protocol.TreeDigest(files, nil)
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%q and %q have the same digest", name, other)
		}
		seen[d] = name
	}
}

func TestTreesThatAreRefused(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("x")}
	for name, c := range map[string]struct {
		files fstest.MapFS
		says  string
	}{
		"empty":                        {fstest.MapFS{}, "holds no file"},
		"only directories":             {fstest.MapFS{"a/b": {Mode: fs.ModeDir}}, "holds no file"},
		"symbolic link":                {fstest.MapFS{"f": file, "l": {Mode: fs.ModeSymlink, Data: []byte("f")}}, `"l" is a symbolic link`},
		"symbolic link to a directory": {fstest.MapFS{"d/f": file, "l": {Mode: fs.ModeSymlink, Data: []byte("d")}}, `"l" is a symbolic link`},
		"named pipe":                   {fstest.MapFS{"f": file, "d/p": {Mode: fs.ModeNamedPipe}}, `"d/p" is a named pipe`},
		"socket":                       {fstest.MapFS{"f": file, "s": {Mode: fs.ModeSocket}}, `"s" is a socket`},
		"device":                       {fstest.MapFS{"f": file, "d": {Mode: fs.ModeDevice | fs.ModeCharDevice}}, `"d" is a device`},
		"something else":               {fstest.MapFS{"f": file, "i": {Mode: fs.ModeIrregular}}, `"i" is a special file`},
		"newline in a name":            {fstest.MapFS{"a\nb": file}, `the file name "a\nb" holds a newline`},
		"newline in a directory":       {fstest.MapFS{"a\nb/c": file}, "holds a newline"},
		"carriage return":              {fstest.MapFS{"a\rb": file}, "holds a newline, carriage return or backslash"},
		"backslash":                    {fstest.MapFS{`a\b`: file}, "holds a newline, carriage return or backslash"},
	} {
		teed := false
		d, err := protocol.TreeDigest(c.files, func(string) (io.WriteCloser, error) {
			teed = true
			return nil, errors.New("teed")
		})
		if err == nil || !strings.Contains(err.Error(), c.says) || d != "" || teed {
			t.Errorf("%s: %q, %v, copied: %v", name, d, err, teed)
		}
	}
}

// The same on a real file system, where a link must not be followed out of it.
func TestTreesOfTheRealFileSystem(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links and odd names need rights or a file system that Windows has not")
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(dir string) error{
		"a link out of it":    func(dir string) error { return os.Symlink(outside, filepath.Join(dir, "l")) },
		"a link inside":       func(dir string) error { return os.Symlink("f", filepath.Join(dir, "l")) },
		"a dangling link":     func(dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "l")) },
		"a link to its top":   func(dir string) error { return os.Symlink(".", filepath.Join(dir, "l")) },
		"a named pipe":        func(dir string) error { return exec.Command("mkfifo", filepath.Join(dir, "p")).Run() },
		"a newline in a name": func(dir string) error { return os.WriteFile(filepath.Join(dir, "a\nb"), nil, 0o600) },
	} {
		dir := write(t, map[string]string{"f": "x"})
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if d, err := protocol.TreeDigest(root.FS(), nil); err == nil {
			t.Errorf("%s: %s", name, d)
		}
		root.Close()
	}
}

func TestTreeDigestIgnoresModes(t *testing.T) {
	dir := write(t, map[string]string{"a": "1"})
	want, err := protocol.TreeDigest(os.DirFS(dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := protocol.TreeDigest(os.DirFS(dir), nil); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// copies is a tee that keeps every file in memory.
type copies struct {
	files             map[string]*bytes.Buffer
	closed            int
	open, write, shut error
}

type copied struct {
	*bytes.Buffer
	c *copies
}

func (c copied) Write(p []byte) (int, error) {
	if c.c.write != nil {
		return 0, c.c.write
	}
	return c.Buffer.Write(p)
}

func (c copied) Close() error {
	c.c.closed++
	return c.c.shut
}

func (c *copies) tee(name string) (io.WriteCloser, error) {
	if c.open != nil {
		return nil, c.open
	}
	c.files[name] = new(bytes.Buffer)
	return copied{c.files[name], c}, nil
}

func TestTeeGetsTheBytesThatAreHashed(t *testing.T) {
	c := &copies{files: map[string]*bytes.Buffer{}}
	want, err := protocol.TreeDigest(os.DirFS(write(t, tricky)), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := protocol.TreeDigest(os.DirFS(write(t, tricky)), c.tee)
	if err != nil || got != want {
		t.Fatalf("%s, %v, want %s", got, err, want)
	}
	for name, content := range tricky {
		if b := c.files[name]; b == nil || b.String() != content {
			t.Errorf("%q was copied as another", name)
		}
	}
	if len(c.files) != len(tricky) || c.closed != len(tricky) {
		t.Errorf("%d copies, %d of them closed, want %d", len(c.files), c.closed, len(tricky))
	}
}

// A copy that did not reach its disk is not what was hashed, whichever call says
// so.
func TestFailingCopyIsNoDigest(t *testing.T) {
	broken := errors.New("no space left")
	for name, c := range map[string]*copies{"open": {open: broken}, "write": {write: broken}, "close": {shut: broken}} {
		c.files = map[string]*bytes.Buffer{}
		d, err := protocol.TreeDigest(fstest.MapFS{"a": {Data: []byte("x")}, "b": {}}, c.tee)
		if !errors.Is(err, broken) || d != "" {
			t.Errorf("%s: %q, %v", name, d, err)
		}
		if c.closed != len(c.files) {
			t.Errorf("%s: %d copies, %d of them closed", name, len(c.files), c.closed)
		}
	}
}
