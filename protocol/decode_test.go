package protocol_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/synapse-module/workers/protocol"
)

// A malformed member leaves the stream in step: it is request_invalid and the
// message names the member.
func TestMalformedMembers(t *testing.T) {
	embed := func(items string) string {
		return `{"type":"EMBED_BATCH","req_id":1,"model_ref":"m1","normalize":true,"items":` + items + `}`
	}
	long := strings.Repeat("9", 129)
	for payload, says := range map[string]string{
		// kinds
		`{"type":"UNLOAD","req_id":1,"model_ref":5}`:                                      `the member "model_ref" is a JSON number, which does not fit`,
		`{"type":"UNLOAD","req_id":1,"model_ref":{}}`:                                     `the member "model_ref" is a JSON object, which does not fit`,
		`{"type":"UNLOAD","req_id":1,"model_ref":["m1"]}`:                                 `the member "model_ref" is a JSON array, which does not fit`,
		`{"type":"EMBED_BATCH","req_id":1,"model_ref":"m","normalize":1,"items":[]}`:      `the member "normalize" is`,
		`{"type":"EMBED_BATCH","req_id":1,"model_ref":"m","normalize":"true","items":[]}`: `the member "normalize" is`,
		embed(`{}`):                                                       `the member "items" is a JSON object`,
		embed(`[[]]`):                                                     `the member "items[0]" is a JSON array`,
		embed(`[{"n_tokens":"3"}]`):                                       `the member "items[0].n_tokens" is`,
		embed(`[{"n_tokens":true}]`):                                      `the member "items[0].n_tokens" is`,
		embed(`[{"n_tokens":1},{"n_tokens":1.5}]`):                        `the member "items[1].n_tokens" is 1.5, which does not fit`,
		embed(`[{"n_tokens":1.0}]`):                                       `the member "items[0].n_tokens" is 1.0, which does not fit`,
		embed(`[{"n_tokens":1e2}]`):                                       `the member "items[0].n_tokens" is 1e2, which does not fit`,
		embed(`[{"n_tokens":-0.0}]`):                                      `the member "items[0].n_tokens" is -0.0, which does not fit`,
		embed(`[{"n_tokens":9223372036854775808}]`):                       `the member "items[0].n_tokens" is 9223372036854775808, which does not fit`,
		embed(`[{"n_tokens":` + strings.Repeat("9", 300) + `}]`):          `the member "items[0].n_tokens" is 99999`,
		`{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":4294967296}`: `the member "max_frame" is 4294967296, which does not fit`,
		`{"type":"HELLO_ACK","v":1,"accept":true,"max_frame":-1}`:         `the member "max_frame" is -1, which does not fit`,
		`{"type":"HELLO_ACK","v":"1","accept":true,"max_frame":65536}`:    `the member "v" is`,
		`{"type":"HELLO","v":1,"nonce":"","pid":1,"max_frame":1,"engine":{"build_flags":"avx2"}}`: `the member "engine.build_flags" is a JSON string`,
		`{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0,"placement_share":1e400}`:         `the member "placement_share" is 1e400, which does not fit`,

		// ids
		`{"type":"PING","req_id":true}`:               `the member "req_id": an id is a JSON true, wanted a number or a string`,
		`{"type":"PING","req_id":[1]}`:                `the member "req_id": an id is a JSON array, wanted a number or a string`,
		`{"type":"PING","req_id":` + long + `}`:       `the member "req_id": an id of 129 bytes is over the limit of 128`,
		`{"type":"PING","req_id":"` + long + `"}`:     `the member "req_id": an id of 129 bytes is over the limit of 128`,
		embed(`[{"n_tokens":1,"id":{"a":1}}]`):        `the member "items[0].id": an id is a JSON object, wanted a number or a string`,
		embed(`[{"n_tokens":1,"id":"` + long + `"}]`): `the member "items[0].id": an id of 129 bytes is over the limit of 128`,

		// missing, null, of another case
		`{"type":"PING"}`:                                               `the member "req_id" is missing`,
		`{"type":"PING","req_id":null}`:                                 `the member "req_id" is missing`,
		`{"type":"PING","Req_ID":1}`:                                    `the member "req_id" is missing`,
		`{"type":"PING","x":{"req_id":1}}`:                              `the member "req_id" is missing`,
		`{"type":"EMBED_BATCH","req_id":1,"model_ref":"m1","items":[]}`: `the member "normalize" is missing`,
		`{"type":"EMBED_BATCH","req_id":1,"normalize":true,"items":[]}`: `the member "model_ref" is missing`,
		embed(`null`):                            `the member "items" is missing`,
		`{"type":"ERR","req_id":1,"code":"oom"}`: `the member "msg" is missing`,

		// twice
		`{"type":"PING","req_id":1,"req_id":1}`:                `the member "req_id" stands there twice`,
		`{"type":"PING","req_id":1,"r\u0065q_id":1}`:           `the member "req_id" stands there twice`,
		`{"type":"PING","req_id":1,"x":1,"x":1}`:               `the member "x" stands there twice`,
		`{"type":"PING","req_id":1,"x":{"y":[{"z":1,"z":1}]}}`: `the member "x.y[0].z" stands there twice`,
		embed(`[{"n_tokens":1,"n_tokens":1}]`):                 `the member "items[0].n_tokens" stands there twice`,
		`{"type":"LOAD","req_id":1,"artifact_path":"p","artifact_digest":"d","format":"f","runtime_config":{"a":{"b":1,"b":1}}}`: `the member "runtime_config.a.b" stands there twice`,
	} {
		m, err := decode(t, payload)
		var refusal *protocol.Error
		if !errors.As(err, &refusal) || refusal.Code != protocol.CodeRequestInvalid {
			t.Errorf("%.100s: error %v, decoded %+v", payload, err, m)
			continue
		}
		if isViolation(err) {
			t.Errorf("%.100s: a violation: %v", payload, err)
		}
		if typ := string(m.MessageType()) + ": "; !strings.HasPrefix(refusal.Msg, typ) || !strings.Contains(refusal.Msg, says) {
			t.Errorf("%.100s: msg is %q, wanted it to say %q", payload, refusal.Msg, says)
		}
		if len(refusal.Msg) > 300 || strings.Contains(refusal.Msg, "protocol.") || strings.Contains(refusal.Msg, "Go ") {
			t.Errorf("%.100s: msg is %q, which is no peer's business", payload, refusal.Msg)
		}
	}
}

// What a peer of a later version may send, and every form that JSON allows.
func TestToleratedForms(t *testing.T) {
	id128 := strings.Repeat("9", 128)
	for payload, want := range map[string]protocol.Message{
		`{"type":"PING","req_id":1,"new":{"a":[1,null,"x"]},"Req_ID":2,"TYPE":"LOAD"}`: &protocol.Ping{ReqID: "1"},
		`{"req_id":1,"type":"PING"}`:                         &protocol.Ping{ReqID: "1"},
		`{"type":"PING","req_id":` + id128 + `}`:             &protocol.Ping{ReqID: protocol.ID(id128)},
		`{"type":"PING","req_id":"` + id128 + `"}`:           &protocol.Ping{ReqID: protocol.ID(`"` + id128 + `"`)},
		`{"type":"PING","req_id":""}`:                        &protocol.Ping{ReqID: `""`},
		`{"type":"PING","req_id":-1.50E+9}`:                  &protocol.Ping{ReqID: "-1.50E+9"},
		`{"type":"PING","req_id":"\u0000\ud83d\ude00"}`:      &protocol.Ping{ReqID: `"\u0000\ud83d\ude00"`},
		`{"type":"UNLOAD","req_id":1,"model_ref":"\u006d1"}`: &protocol.Unload{ReqID: "1", ModelRef: "m1"},
		// null is the same as absent where a member is optional
		`{"type":"EMBED_BATCH","req_id":1,"model_ref":"m1","pooling":null,"normalize":true,"items":[{"id":null,"n_tokens":1}]}`: &protocol.EmbedBatch{ReqID: "1", ModelRef: "m1", Normalize: true, Items: []protocol.Item{{NTokens: 1}}},
		`{"type":"GENERATE","req_id":1,"model_ref":"m1","max_tokens":1,"grammar":null}`:                                         &protocol.Generate{ReqID: "1", ModelRef: "m1", MaxTokens: 1},
		`{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0,"placement_share":null}`:                                        &protocol.Pong{ReqID: "1", RSSMB: 1},
		`{"type":"ERR","req_id":null,"code":"oom","msg":"x"}`:                                                                   &protocol.Err{Code: "oom", Msg: "x"},
		`{"type":"ERR","code":"oom","msg":"x"}`:                                                                                 &protocol.Err{Code: "oom", Msg: "x"},
		`{"type":"SHUTDOWN","req_id":1}`:                                                                                        &protocol.Shutdown{},
		`{"type":"HELLO_ACK","v":1,"accept":false}`:                                                                             &protocol.HelloAck{V: 1},
		`{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0,"placement_share":1}`:                                           &protocol.Pong{ReqID: "1", RSSMB: 1, PlacementShare: ptr(1)},
		`{"type":"PONG","req_id":1,"rss_mb":1,"models_loaded":0,"placement_share":25e-2}`:                                       &protocol.Pong{ReqID: "1", RSSMB: 1, PlacementShare: ptr(0.25)},
	} {
		if got, err := decode(t, payload); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%.100s: %+v, %v, want %+v", payload, got, err, want)
		}
	}
}

// Every required member of every type is missed, and every null is no value.
func TestRequiredMembers(t *testing.T) {
	required := map[protocol.Type][]string{
		"HELLO":       {"v", "nonce", "engine", "pid", "max_frame"},
		"HELLO_ACK":   {"v", "accept"},
		"LOAD":        {"req_id", "artifact_path", "artifact_digest", "format"},
		"LOADED":      {"req_id", "model_ref", "dims", "cold_load_ms"},
		"EMBED_BATCH": {"req_id", "model_ref", "normalize", "items"},
		"VECTORS":     {"req_id", "dims", "n"},
		"RERANK":      {"req_id", "model_ref", "query_n_tokens", "candidates"},
		"SCORES":      {"req_id", "n"},
		"GENERATE":    {"req_id", "model_ref", "max_tokens"},
		"TEXT":        {"req_id", "text", "n_prompt", "n_gen", "finish_reason"},
		"UNLOAD":      {"req_id", "model_ref"},
		"UNLOADED":    {"req_id"},
		"PING":        {"req_id"},
		"PONG":        {"req_id", "rss_mb", "models_loaded"},
		"DESCRIBE":    {"req_id", "model_ref"},
		"DESCRIPTION": {"req_id", "engine", "arch", "dims", "max_tokens", "vocab_size", "pooling", "default_pooling", "rerank", "generate", "grammar", "config"},
		"SHUTDOWN":    nil,
		"ERR":         {"code", "msg"},
	}
	for _, s := range samples {
		for _, member := range required[s.message.MessageType()] {
			renamed := strings.Replace(s.json, `"`+member+`":`, `"`+strings.ToUpper(member)+`":`, 1)
			if renamed == s.json {
				t.Fatalf("the sample %s has no %q", s.json, member)
			}
			if _, err := decode(t, renamed); err == nil || !strings.Contains(err.Error(), `"`+member+`" is missing`) {
				t.Errorf("%s without %q: error %v", s.message.MessageType(), member, err)
			}
		}
	}
}

func TestDecodeIntoAnotherType(t *testing.T) {
	h, err := protocol.Parse([]byte(`{"type":"` + strings.Repeat("X", 1<<16) + `"}`))
	if err != nil {
		t.Fatal(err)
	}
	var refusal *protocol.Error
	if err := h.Decode(new(protocol.Pong)); !errors.As(err, &refusal) || !strings.Contains(refusal.Msg, "wanted PONG") || len(refusal.Msg) > 200 {
		t.Errorf("error %v", err)
	}
}

func TestDecodeErr(t *testing.T) {
	parse := func(payload string) protocol.Header {
		h, err := protocol.Parse([]byte(payload))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	err := parse(`{"type":"ERR","req_id":null,"code":"model_not_found","msg":"no model"}`).DecodeErr()
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != protocol.CodeModelNotFound || refusal.Msg != "no model" || isViolation(err) {
		t.Errorf("error %v", err)
	}
	for _, payload := range []string{`{"type":"PONG","req_id":1}`, `{"type":"ERR","req_id":1,"code":"oom"}`, `{"type":"ERR","req_id":1,"code":7,"msg":""}`, `{"type":"ERR","req_id":[],"code":"oom","msg":""}`} {
		err := parse(payload).DecodeErr()
		if !isViolation(err) {
			t.Errorf("%s: error %v", payload, err)
		}
		var refusal *protocol.Error
		if errors.As(err, &refusal) {
			t.Errorf("%s: the violation %v passes for a refusal", payload, err)
		}
	}
}
