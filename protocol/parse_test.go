package protocol_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
)

func contains(text []byte, s string) bool { return bytes.Contains(text, []byte(s)) }

// What leaves open how the stream goes on is a violation.
func TestViolationsOfAControlFrame(t *testing.T) {
	for name, payload := range map[string]string{
		"nothing":                        "",
		"blanks":                         " \n",
		"not JSON":                       "PING",
		"a byte order mark":              "\xef\xbb\xbf" + `{"type":"PING"}`,
		"an array":                       `[{"type":"PING"}]`,
		"a string":                       `"PING"`,
		"null":                           "null",
		"half an object":                 `{"type":"PING"`,
		"half a name":                    `{"type":"PING","re`,
		"a name without quotes":          `{type:"PING"}`,
		"a name that is a number":        `{1:2,"type":"PING"}`,
		"no value":                       `{"type":}`,
		"a comma too many":               `{"type":"PING",}`,
		"a comment":                      `{"type":"PING"/**/}`,
		"single quotes":                  `{'type':'PING'}`,
		"a number with a leading zero":   `{"type":"PING","x":01}`,
		"NaN":                            `{"type":"PING","x":NaN}`,
		"a control character in a name":  "{\"type\":\"PING\",\"x\n\":1}",
		"an escape that is none":         `{"type":"PING","x":"\x41"}`,
		"half a surrogate pair":          `{"type":"PING","x":"\ud83d"}`,
		"not UTF-8 in a value":           "{\"type\":\"PING\",\"x\":\"\xff\"}",
		"not UTF-8 in a name":            "{\"type\":\"PING\",\"\xff\":1}",
		"not UTF-8, deep":                "{\"type\":\"PING\",\"x\":[{\"y\":\"\xc0\x80\"}]}",
		"an encoded surrogate":           "{\"type\":\"PING\",\"x\":\"\xed\xa0\x80\"}",
		"a second object":                `{"type":"PING"}{}`,
		"a byte behind":                  `{"type":"PING"}x`,
		"a NUL behind":                   "{\"type\":\"PING\"}\x00",
		"no type":                        `{"req_id":1}`,
		"a type of another case":         `{"Type":"PING","TYPE":"PING"}`,
		"an empty type":                  `{"type":""}`,
		"a type that is null":            `{"type":null}`,
		"a type that is a number":        `{"type":1}`,
		"a type that is an array":        `{"type":["PING"]}`,
		"two types":                      `{"type":"PING","req_id":1,"type":"PING"}`,
		"two types, one of them escaped": `{"type":"PING","ty\u0070e":"SHUTDOWN"}`,
		"raw_frames 17":                  `{"type":"NEW","raw_frames":17}`,
		"raw_frames -1":                  `{"type":"NEW","raw_frames":-1}`,
		"raw_frames 1.0":                 `{"type":"NEW","raw_frames":1.0}`,
		"raw_frames 1e0":                 `{"type":"NEW","raw_frames":1e0}`,
		"raw_frames 257":                 `{"type":"NEW","raw_frames":257}`,
		"raw_frames 2^64+1":              `{"type":"NEW","raw_frames":18446744073709551617}`,
		"raw_frames a string":            `{"type":"NEW","raw_frames":"1"}`,
		"raw_frames an object":           `{"type":"NEW","raw_frames":{}}`,
		"raw_frames twice":               `{"type":"NEW","raw_frames":1,"raw_frames":1}`,
		"raw_frames thrice":              `{"raw_frames":1,"raw_frames":1,"raw_frames":1,"type":"NEW"}`,
		"deep arrays":                    `{"type":"PING","x":` + strings.Repeat("[", 1<<20) + `}`,
		"deep arrays, closed":            `{"type":"PING","x":` + strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16) + `}`,
		"deep objects":                   `{"type":"PING","x":` + strings.Repeat(`{"x":`, 1<<16) + `1` + strings.Repeat("}", 1<<16) + `}`,
	} {
		if h, err := protocol.Parse([]byte(payload)); !isViolation(err) {
			t.Errorf("%s: error %v, header %+v", name, err, h)
		} else if len(err.Error()) > 1<<10 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
	}
}

// What a receiver must know to stay in step is read even where the rest is
// malformed.
func TestHeader(t *testing.T) {
	for payload, want := range map[string]protocol.Header{
		`{"type":"PING","req_id":1}`:                       {Type: "PING", ReqID: "1", Known: true},
		" {\t\"req_id\" : 1 ,\r\n\"type\" : \"PING\" } \n": {Type: "PING", ReqID: "1", Known: true}, //nolint:gocritic // the blanks are the point
		`{"ty\u0070e":"PI\u004eG","req_id":1}`:             {Type: "PING", ReqID: "1", Known: true},
		`{"type":"EMBED_BATCH","req_id":"x","items":3}`:    {Type: "EMBED_BATCH", ReqID: `"x"`, Known: true, RawFrames: 1},
		`{"type":"RERANK"}`:                                {Type: "RERANK", Known: true, RawFrames: 1},
		`{"type":"GENERATE","raw_frames":9}`:               {Type: "GENERATE", Known: true, RawFrames: 1},
		`{"type":"PING","raw_frames":"x","raw_frames":2}`:  {Type: "PING", Known: true},
		`{"type":"ping","req_id":1}`:                       {Type: "ping", ReqID: "1"},
		`{"type":"NEW","req_id":1,"raw_frames":16}`:        {Type: "NEW", ReqID: "1", RawFrames: 16},
		`{"raw_frames":2,"type":"NEW"}`:                    {Type: "NEW", RawFrames: 2},
		`{"type":"NEW","raw_frames":0}`:                    {Type: "NEW"},
		`{"type":"NEW","raw_frames":null}`:                 {Type: "NEW"},
		`{"type":"NEW","Raw_frames":3}`:                    {Type: "NEW"},
		`{"type":"PING","req_id":null}`:                    {Type: "PING", Known: true},
		`{"type":"PING","req_id":true}`:                    {Type: "PING", Known: true},
		`{"type":"PING","req_id":[1]}`:                     {Type: "PING", Known: true},
		`{"type":"PING","req_id":1,"req_id":1}`:            {Type: "PING", Known: true},
		`{"type":"PING","req_id":1,"req_id":null}`:         {Type: "PING", Known: true},
		`{"type":"PING","req_id":[],"req_id":1}`:           {Type: "PING", Known: true},
		`{"type":"PING","x":{"type":"LOAD","req_id":7}}`:   {Type: "PING", Known: true},
	} {
		h, err := protocol.Parse([]byte(payload))
		if err != nil {
			t.Errorf("%s: %v", payload, err)
			continue
		}
		if h.Type != want.Type || h.ReqID != want.ReqID || h.Known != want.Known || h.RawFrames != want.RawFrames {
			t.Errorf("%s: the header is %+v, want %+v", payload, h, want)
		}
	}
}

func TestEveryTypeHasItsRawFrames(t *testing.T) {
	for typ, want := range types {
		h, err := protocol.Parse(fmt.Appendf(nil, `{"type":%q}`, typ))
		if err != nil || !h.Known || h.RawFrames != want.raw {
			t.Errorf("%s: %+v, %v, want %d raw frames", typ, h, err, want.raw)
		}
	}
}

// A frame of very many members costs what its bytes cost.
func TestManyMembersAreNotRemembered(t *testing.T) {
	payload := []byte(`{"type":"PING","req_id":1` + strings.Repeat(`,"a":0,"req_id":0,"items":0`, 100_000) + `}`)
	if got := allocated(func() {
		if _, err := protocol.Parse(payload); err != nil {
			t.Error(err)
		}
	}); got > 2*uint64(len(payload)) {
		t.Errorf("%d bytes taken for a frame of %d", got, len(payload))
	}
}

// The header refers to the payload that it was read from, which a receiver reuses
// for the next frame; what it gives out by value must not change with it.
func TestHeaderOutlivesItsBuffer(t *testing.T) {
	payload := []byte(`{"type":"PING","req_id":"abc"}`)
	h, err := protocol.Parse(payload)
	if err != nil {
		t.Fatal(err)
	}
	clear(payload)
	if h.Type != "PING" || h.ReqID != `"abc"` {
		t.Errorf("the header is %+v", h)
	}
}
