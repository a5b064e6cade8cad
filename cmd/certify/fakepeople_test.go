package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// fakePeopleLines are three texts and three pairs, scored so that the fake
// engine's cosines correlate with the scores in full.
func fakePeopleLines() (inputs, pairs string) {
	rows := [][]int32{{1, 2, 3}, {1, 2, 4}, {7, 8, 9}}
	for i, row := range rows {
		line, err := json.Marshal(map[string]any{"id": fmt.Sprintf("p%d", i), "text": fmt.Sprintf("text %d", i), "ids": row, "tags": []string{"set:tiny"}})
		if err != nil {
			panic(err) // the map above is JSON
		}
		inputs += string(line) + "\n"
	}
	for _, p := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
		a, b := fakeVector(rows[p[0]], "mean"), fakeVector(rows[p[1]], "mean")
		var cosine float64
		for j := range a {
			cosine += float64(a[j]) * float64(b[j])
		}
		pairs += fmt.Sprintf(`{"set":"tiny","a":"p%d","b":"p%d","score":%.6f}`+"\n", p[0], p[1], 5+5*cosine)
	}
	return inputs, pairs
}

func (f *fakeFiles) peopleYAML() string {
	if f.people == "" {
		return ""
	}
	inputs, _ := fakePeopleLines()
	return fmt.Sprintf("people: {asset: tiny-people, inputs_sha256: %s, record: people.json}", hexDigest([]byte(inputs)))
}

// writePeople writes the record into dir and the asset beside it.
func (f *fakeFiles) writePeople(dir string) error {
	inputs, pairs := fakePeopleLines()
	record := fmt.Sprintf(`{"schema":1,"pairs":{"count":%d,"sha256":"%s"},"sets":{"tiny":{"pairs":3,"pearson":%s,"spearman":%s}}}`,
		strings.Count(pairs, "\n"), hexDigest([]byte(pairs)), f.people, f.people)
	if err := os.WriteFile(filepath.Join(dir, "people.json"), []byte(record), 0o600); err != nil {
		return err
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		return err
	}
	defer packer.Close()
	asset := dir + "-people"
	if err := os.MkdirAll(asset, 0o777); err != nil {
		return err
	}
	for name, lines := range map[string]string{"inputs.jsonl.zst": inputs, "pairs.jsonl.zst": pairs} {
		if err := os.WriteFile(filepath.Join(asset, name), packer.EncodeAll([]byte(lines), nil), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// flipYAML writes the controls of the artifact alone.
func (f *fakeFiles) flipYAML() string {
	var lines []string
	if f.flip != "" {
		lines = append(lines, fmt.Sprintf("flipped_byte: {offset: %s, mask: 0x80}", f.flip))
	}
	if f.wrong != "" {
		lines = append(lines, "wrong_loads: "+f.wrong)
	}
	return strings.Join(lines, "\n    ")
}
