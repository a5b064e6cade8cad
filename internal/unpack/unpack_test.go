package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/synapse-module/workers/internal/diskcache"
	"github.com/synapse-module/workers/internal/packtest"
	"github.com/synapse-module/workers/protocol"
)

func unpacked(t testing.TB, packed []byte) (dir string, c diskcache.Content, err error) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "content")
	c, err = Tar(dir, bytes.NewReader(packed), int64(len(packed)))
	return dir, c, err
}

func file(name, content string) packtest.Entry {
	return packtest.Entry{Header: tar.Header{Name: name}, Content: content}
}

func entry(name string, kind byte) packtest.Entry {
	return packtest.Entry{Header: tar.Header{Name: name, Typeflag: kind}}
}

// What comes out is what went in, and the digest that is told of it is what a walk
// over it finds.
func TestTar(t *testing.T) {
	for name, entries := range map[string][]packtest.Entry{
		"as tar -c DIR lists it":    {entry("./", tar.TypeDir), file("./model.onnx", "graph"), entry("./1_Pooling/", tar.TypeDir), file("./1_Pooling/config.json", "{}")},
		"as tar -c * lists it":      {file("model.onnx", "graph"), file("1_Pooling/config.json", "{}")},
		"directories after files":   {file("1_Pooling/config.json", "{}"), entry("1_Pooling/", tar.TypeDir), entry("1_Pooling", tar.TypeDir), file("model.onnx", "graph")},
		"an empty directory beside": {file("1_Pooling/config.json", "{}"), file("model.onnx", "graph"), entry("empty/er/", tar.TypeDir)},
	} {
		t.Run(name, func(t *testing.T) {
			dir, c, err := unpacked(t, packtest.Tar(t, entries...))
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]string{"model.onnx": "graph", "1_Pooling/config.json": "{}"} {
				path := filepath.Join(dir, filepath.FromSlash(name))
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%s holds %q, %v", name, got, err)
				}
				if info, err := os.Stat(path); err != nil || info.Mode() != privateFile {
					t.Errorf("%s has the mode %v", name, info.Mode())
				}
			}
			if found, err := diskcache.TreeContent(dir); err != nil || found != c {
				t.Errorf("told is %+v, found %+v, %v", c, found, err)
			}
		})
	}
}

// Names are the archive's own, whatever is in them, up to the bounds.
func TestTarTakesNames(t *testing.T) {
	for _, name := range []string{
		" lead and trail ", "日本/é", "e\u0301", "-rf", "*", "\"'$(x)`", "tab\there", ".hidden/.file", "onnx::MatMul_12",
		strings.Repeat("a", maxNameBytes), strings.Repeat("d/", maxDepth) + "f",
		strings.Repeat("x", maxNameBytes) + "/y/" + strings.Repeat("z", maxPathBytes-maxNameBytes-3),
	} {
		dir, _, err := unpacked(t, packtest.Tar(t, file(name, "x")))
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
}

func TestTarRefuses(t *testing.T) {
	link := func(name, target string, kind byte) packtest.Entry {
		return packtest.Entry{Header: tar.Header{Name: name, Linkname: target, Typeflag: kind}}
	}
	many := make([]packtest.Entry, maxEntries+1)
	for i := range many {
		many[i] = file(fmt.Sprint(i), "")
	}
	good := file("model.onnx", "graph")
	raw := func(b []byte) []byte { return packtest.Zstd(t, b) }
	plain := decompressed(t, packtest.Tar(t, good))
	for name, c := range map[string]struct {
		packed []byte
		says   string
	}{
		"a path upwards":              {packtest.Tar(t, good, file("../evil", "x")), `"../evil"`},
		"a path upwards inside":       {packtest.Tar(t, file("a/../../evil", "x")), "without .."},
		"a path with dots inside":     {packtest.Tar(t, file("a/../b", "x")), "without .."},
		"a path with a dot inside":    {packtest.Tar(t, file("a/./b", "x")), "without . and"},
		"dots alone":                  {packtest.Tar(t, file("..", "x")), `".."`},
		"the top as a file":           {raw(retyped(t, entry("./", tar.TypeDir), tar.TypeReg)), `""`},
		"an absolute path":            {packtest.Tar(t, file("/etc/evil", "x")), "not absolute"},
		"an absolute directory":       {packtest.Tar(t, entry("/evil/", tar.TypeDir)), "not absolute"},
		"two slashes":                 {packtest.Tar(t, file("a//b", "x")), `"a//b"`},
		"a backslash":                 {packtest.Tar(t, file(`a\b`, "x")), "backslash"},
		"a newline":                   {packtest.Tar(t, file("a\nb", "x")), "newline"},
		"a carriage return":           {packtest.Tar(t, file("a\rb", "x")), "carriage return"},
		"no UTF-8":                    {packtest.Tar(t, packtest.Entry{Header: tar.Header{Name: "a\xff", Format: tar.FormatGNU}, Content: "x"}), "UTF-8"},
		"a symbolic link":             {packtest.Tar(t, link("l", "/etc/passwd", tar.TypeSymlink)), `symbolic link "l"`},
		"a link and a file behind it": {packtest.Tar(t, link("d", "/tmp", tar.TypeSymlink), file("d/evil", "x")), "symbolic link"},
		"a hard link":                 {packtest.Tar(t, good, link("l", "model.onnx", tar.TypeLink)), `hard link "l"`},
		"a pipe":                      {packtest.Tar(t, entry("p", tar.TypeFifo)), "named pipe"},
		"a character device":          {packtest.Tar(t, entry("c", tar.TypeChar)), "device"},
		"a block device":              {packtest.Tar(t, entry("b", tar.TypeBlock)), "device"},
		"an unknown type":             {raw(retyped(t, file("x", ""), 'Z')), "entry of type 'Z'"},
		"a global header":             {packtest.Tar(t, packtest.Entry{Header: tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"path": "evil"}}}, good), "global header"},
		"a sparse file of GNU's":      {raw(retyped(t, packtest.Entry{Header: tar.Header{Name: "s", Format: tar.FormatGNU}}, tar.TypeGNUSparse)), "sparse file"},
		"a sparse file of PAX":        {raw(append(retyped(t, file("x", "22 GNU.sparse.major=1\n"), tar.TypeXHeader), plain...)), "sparse file"},
		"a directory with bytes":      {raw(retyped(t, file("d", strings.Repeat("x", 512)), tar.TypeDir)), "512 bytes"},
		"a name twice":                {packtest.Tar(t, good, file("model.onnx", "other")), `"model.onnx" twice`},
		"a name twice, with a dot":    {packtest.Tar(t, good, file("./model.onnx", "other")), `"model.onnx" twice`},
		"a file and a directory":      {packtest.Tar(t, file("a", "x"), file("a/b", "x")), `"a" twice`},
		"a directory and a file":      {packtest.Tar(t, file("a/b", "x"), file("a", "x")), `"a" twice`},
		"capitals":                    {packtest.Tar(t, good, file("Model.ONNX", "x")), "one name on some systems"},
		"capitals of a directory":     {packtest.Tar(t, file("a/x", "x"), file("A/y", "x")), "one name on some systems"},
		"capitals beyond ASCII":       {packtest.Tar(t, file("straße", "x"), file("STRASSE", "x")), "one name on some systems"},
		"composed and not":            {packtest.Tar(t, file("é", "x"), file("e\u0301", "x")), "one name on some systems"},
		"a name too long":             {packtest.Tar(t, file(strings.Repeat("a", maxNameBytes+1), "x")), "256 bytes, the longest allowed has 255"},
		"a path too long":             {packtest.Tar(t, file(strings.Repeat("a/", maxPathBytes/2)+"f", "x")), "513 bytes, the longest allowed has 512"},
		"too deep":                    {packtest.Tar(t, file(strings.Repeat("d/", maxDepth+1)+"f", "x")), "more than 16 directories"},
		"too many entries":            {packtest.Tar(t, many...), "over 10000 entries"},
		"no file":                     {packtest.Tar(t, entry("d/", tar.TypeDir)), "no file"},
		"nothing":                     {packtest.Tar(t), "no file"},
		"nothing at all":              {nil, "no file"},
		"no zstd":                     {plain, "zstd: "},
		"no tar":                      {raw([]byte(strings.Repeat("junk", 300))), "tar: "},
		"cut in a file":               {raw(plain[:tarBlock+3]), "tar: "},
		"cut in the compression":      {packtest.Tar(t, good)[:20], "zstd: "},
		"a flipped byte":              {flipped(packtest.Tar(t, good)), "zstd: "},
		"a second archive behind":     {raw(append(bytes.Clone(plain), plain...)), "no padding"},
		"a second frame with one":     {append(packtest.Tar(t, good), packtest.Tar(t, good)...), "no padding"},
		"a bomb":                      {packtest.Zstd(t, append(bytes.Clone(plain[:len(plain)-2*tarBlock]), make([]byte, freeBytes+1)...)), "unpacks to more than 64 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, content, err := unpacked(t, c.packed)
			var failed *WriteError
			if err == nil || errors.As(err, &failed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("unpacked to %+v: %v", content, err)
			}
			outside, err := os.ReadDir(filepath.Dir(dir))
			if err != nil || len(outside) > 1 {
				t.Errorf("beside the directory lie %v, %v", outside, err)
			}
		})
	}
}

// tarBlock is the unit of a tar archive.
const tarBlock = 512

// retyped is the uncompressed archive of an entry, without its end, that says
// another type than the library writes.
func retyped(t *testing.T, e packtest.Entry, kind byte) []byte {
	t.Helper()
	const typeAt, sumAt, sumEnd = 156, 148, 156
	b := decompressed(t, packtest.Tar(t, e))
	b[typeAt] = kind
	copy(b[sumAt:sumEnd], "        ")
	sum := 0
	for _, x := range b[:tarBlock] {
		sum += int(x)
	}
	copy(b[sumAt:sumEnd], fmt.Sprintf("%06o\x00 ", sum))
	return b[:len(b)-2*tarBlock]
}

func decompressed(t testing.TB, packed []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := io.ReadAll(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// flipped has another byte in the middle, which a checksum or the form shows.
func flipped(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)/2] ^= 0x10
	return b
}

func unzstd(t testing.TB, packed []byte) (path string, c diskcache.Content, err error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "content")
	c, err = File(path, bytes.NewReader(packed), int64(len(packed)))
	return path, c, err
}

func TestFile(t *testing.T) {
	large := bytes.Repeat([]byte("weights, more or less"), 100_000)
	for name, c := range map[string]struct{ packed, want []byte }{
		"one frame":         {packtest.Zstd(t, large), large},
		"several frames":    {append(packtest.Zstd(t, large), packtest.Zstd(t, []byte("more"))...), append(bytes.Clone(large), "more"...)},
		"a skippable frame": {append([]byte{0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 'h', 'i'}, packtest.Zstd(t, large)...), large},
		"zeros, a little":   {packtest.Zstd(t, make([]byte, freeBytes)), make([]byte, freeBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			path, content, err := unzstd(t, c.packed)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, c.want) {
				t.Errorf("unpacked to %d other bytes, %v", len(got), err)
			}
			if want, err := protocol.FileDigest(bytes.NewReader(c.want)); err != nil || content.Digest != want || content.Bytes != int64(len(c.want)) {
				t.Errorf("told is %+v, want %s, %v", content, want, err)
			}
		})
	}
}

func TestFileRefuses(t *testing.T) {
	good := packtest.Zstd(t, bytes.Repeat([]byte("weights "), 1000))
	for name, c := range map[string]struct {
		packed []byte
		says   string
	}{
		"no zstd":              {[]byte("synapse fake model"), "zstd: "},
		"cut":                  {good[:len(good)-5], "zstd: "},
		"a flipped byte":       {flipped(good), "zstd: "},
		"a wrong checksum":     {append(bytes.Clone(good[:len(good)-1]), good[len(good)-1]^1), "zstd: "},
		"junk behind":          {append(bytes.Clone(good), "junk"...), "zstd: "},
		"another's dictionary": {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0x21, 0x01, 0x00, 0x00, 0x00}, "zstd: "},
		"a bomb":               {packtest.Zstd(t, make([]byte, freeBytes+1)), "unpacks to more than 64 MiB"},
		"a window too large":   {streamed(t, 2*maxWindow), "--long=27"},
	} {
		t.Run(name, func(t *testing.T) {
			_, content, err := unzstd(t, c.packed)
			var failed *WriteError
			if err == nil || errors.As(err, &failed) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("unpacked to %+v: %v", content, err)
			}
		})
	}
}

// The bound grows with what is paid for, and never over the end.
func TestBounds(t *testing.T) {
	for packed, want := range map[int64]int64{0: freeBytes, 1: freeBytes, 1 << 20: maxRatio << 20, 1 << 40: maxBytes} {
		s, err := decompress(strings.NewReader(""), packed)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if s.limit != want {
			t.Errorf("%d bytes may become %d, want %d", packed, s.limit, want)
		}
	}
}

func TestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		packed []byte
		want   uint64
	}{
		"no zstd":   {[]byte("synapse fake model"), 0},
		"nothing":   {nil, 0},
		"in one go": {single(t, 1000), 1000},
		"a stream":  {streamed(t, 1<<20), 1 << 20},
		"too large": {streamed(t, 2*maxWindow), maxWindow},
	} {
		if got := Window(c.packed[:min(len(c.packed), HeadBytes)]); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// single is a frame that says how many bytes are in it, and no window.
func single(t *testing.T, bytes int) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(make([]byte, bytes), nil)
}

// streamed is a frame of 1 MiB that does not say so, and therefore its window.
func streamed(t *testing.T, window int) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := zstd.NewWriter(&out, zstd.WithWindowSize(window), zstd.WithSingleSegment(false))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What cannot be written is no fault of the archive.
func TestWriteErrors(t *testing.T) {
	packed := packtest.Tar(t, file("a", "x"))
	nowhere := filepath.Join(t.TempDir(), "no", "such", "directory")
	var failed *WriteError
	if _, err := File(nowhere, bytes.NewReader(packed), int64(len(packed))); !errors.As(err, &failed) {
		t.Errorf("File: %v", err)
	}
	if _, err := Tar(nowhere, bytes.NewReader(packed), int64(len(packed))); !errors.As(err, &failed) {
		t.Errorf("Tar: %v", err)
	}
}

// Whatever comes in: an error, or a tree that is what is told of it, within the
// bounds, and nothing beside it.
func FuzzTar(f *testing.F) {
	f.Add(decompressed(f, packtest.Tar(f, file("model.onnx", "graph"), entry("d/", tar.TypeDir), file("d/x", "y"))))
	f.Add(decompressed(f, packtest.Tar(f, file(strings.Repeat("d/", 100)+"f", "long"))))
	f.Add(decompressed(f, packtest.Tar(f, file("../x", "y"))))
	f.Fuzz(func(t *testing.T, plain []byte) {
		dir, c, err := unpacked(t, packtest.Zstd(t, plain))
		beside, readErr := os.ReadDir(filepath.Dir(dir))
		if readErr != nil || len(beside) > 1 {
			t.Fatalf("beside the directory lie %v, %v", beside, readErr)
		}
		if err != nil {
			return
		}
		if found, err := diskcache.TreeContent(dir); err != nil || found != c || c.Bytes > int64(len(plain)) {
			t.Fatalf("told is %+v, found %+v, %v", c, found, err)
		}
	})
}

func FuzzFile(f *testing.F) {
	f.Add(packtest.Zstd(f, []byte("weights")))
	f.Add(packtest.Zstd(f, make([]byte, 1<<20)))
	f.Fuzz(func(t *testing.T, packed []byte) {
		path, c, err := unzstd(t, packed)
		if err != nil {
			return
		}
		got, err := os.ReadFile(path)
		if err != nil || int64(len(got)) != c.Bytes {
			t.Fatalf("told is %+v, %d bytes were written, %v", c, len(got), err)
		}
	})
}

// Names that pass lie in the directory, and no two of them are one where capitals
// make no difference.
func FuzzNames(f *testing.F) {
	f.Add("model.onnx", "Model.onnx")
	f.Add("a/b", "a")
	f.Add("../x", "a/../../x")
	f.Add("é", "e\u0301")
	f.Fuzz(func(t *testing.T, a, b string) {
		n := names{}
		if n.add(a, false) != nil {
			return
		}
		if !filepath.IsLocal(a) || path.Clean(a) != a {
			t.Fatalf("%q passes", a)
		}
		if n.add(b, false) == nil && (strings.EqualFold(a, b) || strings.HasPrefix(b, a+"/") || strings.HasPrefix(a, b+"/")) {
			t.Fatalf("%q and %q pass", a, b)
		}
	})
}
