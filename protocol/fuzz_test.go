package protocol_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"github.com/synapse-module/workers/protocol"
)

// FuzzFrame reads any stream in any pieces and holds the reader to a second
// reader of the specification: the same frames, the same kind of end, and no more
// memory than what arrived calls for.
func FuzzFrame(f *testing.F) {
	for _, s := range samples {
		f.Add(append(frame(s.json), frame("\x00\x00\x80\x3f")...), uint32(1<<10), uint8(1))
	}
	f.Add([]byte{}, uint32(0), uint8(0))
	f.Add(announced(0), uint32(8), uint8(0))
	f.Add(announced(0xFFFFFFFF), uint32(1<<30), uint8(3))
	f.Add(append(announced(1<<30), make([]byte, 100)...), uint32(1<<30), uint8(3))
	f.Add(append(frame("1234"), 5, 0, 0), uint32(4), uint8(2))
	f.Fuzz(func(t *testing.T, stream []byte, limit uint32, piece uint8) {
		r := protocol.NewFrameReader(&chunks{stream, int(piece) + 1}, limit)
		var buf []byte
		rest := stream
		for i := 0; ; i++ {
			raw := i%2 == 1 // control and raw frames in turn
			var err error
			if raw {
				buf, err = r.ReadRaw(buf)
			} else {
				buf, err = r.ReadControl(buf)
			}
			if most := max(64<<10, 2*len(stream)); cap(buf) > most {
				t.Fatalf("%d bytes held of a stream of %d", cap(buf), len(stream))
			}
			var want []byte
			ok := len(rest) >= 4
			if ok {
				n := uint64(binary.LittleEndian.Uint32(rest))
				ok = n <= uint64(limit) && (raw || n > 0) && uint64(len(rest))-4 >= n
				if ok {
					want, rest = rest[4:4+n], rest[4+n:]
				}
			}
			switch {
			case ok && (err != nil || !bytes.Equal(buf, want)):
				t.Fatalf("frame %d: %q, %v, want %q", i, buf, err, want)
			case ok:
				continue
			case len(rest) == 0 && !raw && !errors.Is(err, io.EOF):
				t.Fatalf("at the end between two messages: %v", err)
			case (len(rest) > 0 || raw) && !isViolation(err):
				t.Fatalf("at %d bytes that are no frame: %v", len(rest), err)
			}
			return
		}
	})
}

// chunks hands out a stream in pieces of one size.
type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.size)], c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// FuzzMessage gives any bytes to Parse and Decode. What they refuse is refused as
// the right kind of error; what they take is JSON by the standard library's
// judgement too, and its re-encoding is a fixed point.
func FuzzMessage(f *testing.F) {
	for _, s := range samples {
		f.Add([]byte(s.json))
	}
	for _, payload := range []string{
		`{"type":"NEW","req_id":1,"raw_frames":16}`, `{"type":"NEW","raw_frames":1,"raw_frames":2}`,
		`{"ty\u0070e":"PING","req_id":"\ud83d\ude00"}`, `{"type":"PING","req_id":1,"req_id":2}`,
		` {"x":[{"y":{}}],"type" : "PING","req_id":-1.5E+3}` + "\n", `{"type":"PING","req_id":1}x`,
		`{"type":"EMBED_BATCH","req_id":1,"model_ref":"m","normalize":true,"items":[{"id":null,"n_tokens":1e2}]}`,
		`{"type":"LOAD","req_id":1,"artifact_path":"p","artifact_digest":"d","format":"f","runtime_config": [ 1 , "\/" ] }`,
		`{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0,"placement_share":1e-400}`,
		"{\"type\":\"PING\",\"x\":\"\xff\"}", `{"type":"PING","x":"\ud800"}`, `[]`, ``,
	} {
		f.Add([]byte(payload))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		original := bytes.Clone(payload)
		h, err := protocol.Parse(payload)
		if err != nil {
			if !isViolation(err) || len(err.Error()) > 1<<10 {
				t.Fatalf("Parse: %v", err)
			}
			return
		}
		var members map[string]stdjson.RawMessage
		if err := stdjson.Unmarshal(payload, &members); err != nil || !utf8.Valid(payload) {
			t.Fatalf("Parse takes what is no JSON object in UTF-8: %v", err)
		}
		var typ string
		if err := stdjson.Unmarshal(members["type"], &typ); err != nil || typ != string(h.Type) || typ == "" {
			t.Fatalf("type is %q, %v, the header says %q", typ, err, h.Type)
		}
		if h.RawFrames < 0 || h.RawFrames > protocol.MaxRawFrames || len(h.ReqID) > protocol.MaxIDBytes+2 {
			t.Fatalf("header %+v", h)
		}
		known, ok := types[h.Type]
		if ok != h.Known {
			t.Fatalf("known: %v, want %v", h.Known, ok)
		}
		if !ok {
			return
		}
		m := known.empty()
		if err := h.Decode(m); err != nil {
			var refusal *protocol.Error
			if !errors.As(err, &refusal) || refusal.Code != protocol.CodeRequestInvalid || isViolation(err) || !utf8.ValidString(refusal.Msg) || len(refusal.Msg) > 16<<10 {
				t.Fatalf("Decode: %v", err)
			}
			return
		}
		once, err := protocol.Marshal(m)
		if err != nil {
			t.Fatalf("what was decoded cannot be encoded: %v", err)
		}
		h2, err := protocol.Parse(once)
		if err != nil || h2.Type != h.Type || h2.RawFrames != h.RawFrames || h2.Known != h.Known {
			t.Fatalf("%s: %+v, %v", once, h2, err)
		}
		if id := reflect.ValueOf(m).Elem().FieldByName("ReqID"); id.IsValid() && (id.String() != string(h.ReqID) || h2.ReqID != h.ReqID) {
			t.Fatalf("req_id is %q in the header, %q in the message, %q sent back", h.ReqID, id.String(), h2.ReqID)
		}
		m2 := known.empty()
		if err := h2.Decode(m2); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		twice, err := protocol.Marshal(m2)
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("re-encoded it is\n%s, and once more\n%s, %v", once, twice, err)
		}
		if !bytes.Equal(payload, original) {
			t.Fatal("the payload was changed")
		}
	})
}

// digestForm is the form of a digest in other words than ParseDigest's.
var digestForm = regexp.MustCompile(`\A(sha256|sha256-tree):[0-9a-f]{64}\z`)

func FuzzDigest(f *testing.F) {
	for _, s := range []string{"", "sha256:", "sha256:" + abcSHA, "sha256-tree:" + abcSHA, "sha256:" + abcSHA + "\n", "SHA256:" + abcSHA, "sha256:" + strings.ToUpper(abcSHA), "sha256:" + abcSHA[:63] + "é"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := protocol.ParseDigest(s)
		if (err == nil) != digestForm.MatchString(s) {
			t.Fatalf("%q: %v", s, err)
		}
		if err == nil && (string(d) != s || !strings.HasSuffix(s, ":"+d.Hex()) || d.IsTree() != strings.HasPrefix(s, "sha256-tree:")) {
			t.Fatalf("%q became %q, %q, tree: %v", s, d, d.Hex(), d.IsTree())
		}
		sum, err := protocol.FileDigest(strings.NewReader(s))
		if want := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(s))); err != nil || string(sum) != want {
			t.Fatalf("FileDigest is %s, %v, want %s", sum, err, want)
		}
	})
}

// FuzzTree makes trees of any names, contents and kinds of file and holds
// TreeDigest to a second implementation. names are parted by NUL; file i takes
// the i-th part of contents, and is no regular file where bit i of odd is set.
func FuzzTree(f *testing.F) {
	var names, contents []string
	for name, content := range tricky {
		names = append(names, name)
		contents = append(contents, content[:min(len(content), 100)])
	}
	f.Add(strings.Join(names, "\x00"), strings.Join(contents, ""), uint64(0))
	f.Add("a\x00b\x00c/d", "123", uint64(2))
	f.Add("a\nb\x00c", "", uint64(0))
	f.Add(`a\b`, "x", uint64(0))
	f.Add("caf\xe9", "x", uint64(0))
	f.Add("", "", uint64(0))
	kinds := []fs.FileMode{fs.ModeSymlink, fs.ModeNamedPipe, fs.ModeSocket, fs.ModeDevice, fs.ModeIrregular}
	f.Fuzz(func(t *testing.T, nameList, contents string, odd uint64) {
		names := strings.Split(nameList, "\x00")
		slices.Sort(names)
		names = slices.Compact(names)
		if len(names) > 64 {
			return // bit i of odd says the kind of file i
		}
		files, legal := fstest.MapFS{}, true
		var lines strings.Builder
		for i, name := range names {
			if !fs.ValidPath(name) || name == "." || slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
				continue // no tree holds it: no path, or both a file and a directory
			}
			part := contents[len(contents)*i/len(names) : len(contents)*(i+1)/len(names)]
			file := &fstest.MapFile{Data: []byte(part)}
			if odd>>i&1 == 1 {
				file.Mode = kinds[i%len(kinds)]
				legal = false
			}
			files[name] = file
			legal = legal && !strings.ContainsAny(name, "\n\r\\")
			fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256([]byte(part)), name)
		}
		legal = legal && len(files) > 0
		copies := &copies{files: map[string]*bytes.Buffer{}}
		got, err := protocol.TreeDigest(files, copies.tee)
		if (err == nil) != legal {
			t.Fatalf("error %v, legal: %v", err, legal)
		}
		if err != nil {
			return
		}
		if want := fmt.Sprintf("sha256-tree:%x", sha256.Sum256([]byte(lines.String()))); string(got) != want {
			t.Fatalf("digest %s, want %s", got, want)
		}
		for name, file := range files {
			if !bytes.Equal(copies.files[name].Bytes(), file.Data) {
				t.Fatalf("%q was copied as another", name)
			}
		}
	})
}
