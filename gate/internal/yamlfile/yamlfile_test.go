package yamlfile

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A recipe has one field of every kind that gate's files use.
type recipe struct {
	Name  string                      `yaml:"name"`
	Count int                         `yaml:"count"`
	Ratio float64                     `yaml:"ratio"`
	Quick bool                        `yaml:"quick"`
	Words []string                    `yaml:"words"`
	Parts []part                      `yaml:"parts"`
	Sizes map[string]map[string]int64 `yaml:"sizes"`
	Bound map[string]float64          `yaml:"bound"`
	Inner *part                       `yaml:"inner"`
}

type part struct {
	ID    string  `yaml:"id"`
	Value float64 `yaml:"value"`
}

const good = `# comment
name: x
count: 3
ratio: 1.5e-3
quick: true
words: [a, "b"]
parts:
  - {id: one, value: 1}
  - id: two
    value: 2
sizes:
  small: {n: 1}
bound: {error: 0.5}
inner: {id: z}
`

func TestDecodeReadsEveryKind(t *testing.T) {
	var r recipe
	lines, err := Decode([]byte(good), "f.yaml", &r)
	if err != nil {
		t.Fatal(err)
	}
	want := recipe{Name: "x", Count: 3, Ratio: 1.5e-3, Quick: true, Words: []string{"a", "b"},
		Parts: []part{{"one", 1}, {"two", 2}}, Sizes: map[string]map[string]int64{"small": {"n": 1}},
		Bound: map[string]float64{"error": 0.5}, Inner: &part{ID: "z"}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
	for path, line := range map[string]int{"name": 2, "words[1]": 6, "parts[0].id": 8, "parts[1]": 9, "parts[1].value": 10,
		"sizes.small": 12, "sizes.small.n": 12, "bound.error": 13, "inner.id": 14} {
		if lines[path] != line {
			t.Errorf("%s is on line %d, want %d", path, lines[path], line)
		}
	}
}

// refusals are files and exactly what is said of them.
var refusals = []struct{ name, text, want, hint string }{
	{"empty", "", "f.yaml: is empty", ""},
	{"comment only", "# nothing\n", "f.yaml: is empty", ""},
	{"marker only", "---\n", "f.yaml: is empty", ""},
	{"nothing, spelt out", "~\n", "f.yaml: is empty", ""},
	{"unknown key", "nmae: x\n", `f.yaml:1: unknown key "nmae"`, `did you mean "name"?`},
	{"unknown key, nothing near", "name: x\nzzzzzzzz: 1\n", `f.yaml:2: unknown key "zzzzzzzz"`,
		"known keys here: name, count, ratio, quick, words, parts, sizes, bound, inner"},
	{"unknown key below", "parts:\n  - id: a\n    vlaue: 1\n", `f.yaml:3: unknown key "vlaue"`, `did you mean "value"?`},
	{"unknown key below a pointer", "inner:\n  ident: a\n", `f.yaml:2: unknown key "ident"`, "known keys here: id, value"},
	{"key in another case", "Name: x\n", `f.yaml:1: unknown key "Name"`, `did you mean "name"?`},
	{"key twice", "name: x\ncount: 1\nname: y\n", `f.yaml:3: key "name" appears twice`, ""},
	{"map key twice", "bound:\n  a: 1\n  a: 2\n", `f.yaml:3: key "a" appears twice`, ""},
	{"second document", "name: x\n---\nname: y\n", "f.yaml:2: holds a second document, which would be ignored", ""},
	{"key without value", "name: x\nparts:\n", `f.yaml:2: key "parts" has no value`, ""},
	{"null", "name: ~\n", `f.yaml:1: key "name" has no value`, ""},
	{"map key without value", "bound:\n  error:\n", `f.yaml:2: key "error" has no value`, ""},
	{"list entry without value", "words: [a, ~]\n", "f.yaml:1: an entry of the list has no value", ""},
	{"NaN", "ratio: .nan\n", `f.yaml:1: ".nan" is not a finite number: no value would ever exceed it`, ""},
	{"infinity", "ratio: -.inf\n", `f.yaml:1: "-.inf" is not a finite number: no value would ever exceed it`, ""},
	{"NaN in a map", "bound:\n  error: .NaN\n", `f.yaml:2: ".NaN" is not a finite number: no value would ever exceed it`, ""},
	{"too large a number", "ratio: 1e999\n", `f.yaml:1: a number is needed here, not text ("1e999")`, ""},
	{"fraction for a count", "count: 1.9\n", `f.yaml:1: a whole number is needed here, not "1.9"`, ""},
	{"fraction for a size", "sizes:\n  a: {n: 1.5}\n", `f.yaml:2: a whole number is needed here, not "1.5"`, ""},
	{"count too large", "count: 99999999999999999999\n", `f.yaml:1: a whole number is needed here, not "99999999999999999999"`, ""},
	{"text for a number", "count: many\n", `f.yaml:1: a number is needed here, not text ("many")`, ""},
	{"text for a truth", "quick: maybe\n", `f.yaml:1: true or false is needed here, not text ("maybe")`, ""},
	{"text for a list", "words: a\n", `f.yaml:1: a list is needed here, not text ("a")`, "[a] is a list of one"},
	{"list for text", "name: [a]\n", "f.yaml:1: text is needed here, not a list", ""},
	{"text for a mapping", "inner: a\n", `f.yaml:1: a mapping is needed here, not text ("a")`, ""},
	{"list at the top", "- name\n", "f.yaml:1: a mapping is needed here, not a list", ""},
	{"text at the top", "name\n", `f.yaml:1: a mapping is needed here, not text ("name")`, ""},
	{"anchor", "name: &a x\n", "f.yaml:1: anchors and aliases are not accepted here", ""},
	{"alias", "inner: {id: a}\nwords: *a\n", "f.yaml: unknown anchor 'a' referenced", ""},
	{"merge key", "inner:\n  <<: {id: a}\n", `f.yaml:2: unknown key "<<"`, "known keys here: id, value"},
	{"tab", "name: x\n\tcount: 1\n", "f.yaml:2: found a tab character that violates indentation", "YAML is indented with spaces"},
	{"bracket that stays open", "name: x\nwords: [a, b\n", "f.yaml:2: did not find expected ',' or ']'", "the bracket that opens here is not closed, or a comma is missing"},
	{"list without its sign", "words:\n  - a\n  b: c\n", "f.yaml:2: did not find expected '-' indicator", "every entry of a list begins with '- ', and all of them in one column"},
	{"colon without a space", "{name:x}", `f.yaml:1: unknown key "name:x"`, "a space is missing after the colon: name: x"},
	{"open quote", "name: \"x\n", "f.yaml:2: found unexpected end of stream", ""},
	{"not UTF-8", "name: \xff\n", "f.yaml: invalid leading UTF-8 octet", ""},
	{"control character", "name: a\x01b\n", "f.yaml: control characters are not allowed", ""},
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			var r recipe
			_, err := Decode([]byte(c.text), "f.yaml", &r)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if e.Error() != c.want || e.Advice != c.hint {
				t.Errorf("got  %s (hint %q)\nwant %s (hint %q)", e, e.Advice, c.want, c.hint)
			}
		})
	}
}

func TestDecodeBoundsItsInput(t *testing.T) {
	exact := "name: " + strings.Repeat("x", maxSize-len("name: "))
	var r recipe
	if _, err := Decode([]byte(exact), "f.yaml", &r); err != nil || len(r.Name) != maxSize-6 {
		t.Errorf("%d bytes: %v", len(exact), err)
	}
	if _, err := Decode([]byte(exact+"x"), "f.yaml", &r); err == nil || err.Error() != "f.yaml: is larger than 1048576 bytes" {
		t.Errorf("%d bytes: %v", len(exact)+1, err)
	}
	if _, err := Decode([]byte(strings.Repeat("[", 100_000)), "f.yaml", &r); err == nil {
		t.Error("100,000 open brackets are accepted")
	}
}

func TestReadNamesTheFileAsItIsCalled(t *testing.T) {
	dir := t.TempDir()
	var r recipe
	_, err := Read(filepath.Join(dir, "none.yaml"), "sub/none.yaml", &r)
	if err == nil || err.Error() != "sub/none.yaml: cannot be read: no such file or directory" {
		t.Errorf("no file: %v", err)
	}
	if _, err = Read(dir, "sub", &r); err == nil || err.Error() != "sub: cannot be read: is a directory" {
		t.Errorf("a folder: %v", err)
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, os.DevNull} {
		if _, err = Read(file, "odd.yaml", &r); err == nil || err.Error() != "odd.yaml: cannot be read: it is a pipe, a socket or a device" {
			t.Errorf("%s: %v", file, err)
		}
	}
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, make([]byte, maxSize+5), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Read(large, "large.yaml", &r); err == nil || err.Error() != "large.yaml: is larger than 1048576 bytes" {
		t.Errorf("a large file: %v", err)
	}
	file := filepath.Join(dir, "good.yaml")
	if err := os.WriteFile(file, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if lines, err := Read(file, "good.yaml", &r); err != nil || r.Name != "x" || lines["count"] != 3 {
		t.Errorf("a good file: %v, %+v", err, r)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"ptxas.registers", "ptxas.spill_bytes", "latency.typical"}
	for _, c := range []struct{ word, want string }{
		{"ptxas.register", "ptxas.registers"}, {"PTXAS.SPILL_BYTES", "ptxas.spill_bytes"},
		{"latency.typcial", "latency.typical"}, {"bananas", ""}, {"", ""},
	} {
		if got := Nearest(c.word, known); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.word, got, c.want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("nothing is known, and %q is near", got)
	}
}

// FuzzDecode holds: whatever is wrong is an *Error that names the file, and
// whatever is accepted is finite, of one document, and without a silent loss:
// every key that the text has is a key of the struct.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(good))
	for _, c := range refusals {
		f.Add([]byte(c.text))
	}
	keys := []string{"name", "count", "ratio", "quick", "words", "parts", "sizes", "bound", "inner"}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r recipe
		lines, err := Decode(data, "f.yaml", &r)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.File != "f.yaml" || e.Msg == "" || e.Line < 0 {
				t.Fatalf("%T: %v", err, err)
			}
			if lines != nil {
				t.Fatal("an error comes with a result")
			}
			return
		}
		numbers := []float64{r.Ratio}
		for _, p := range r.Parts {
			numbers = append(numbers, p.Value)
		}
		for _, b := range r.Bound {
			numbers = append(numbers, b)
		}
		for _, x := range numbers {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%v was accepted", x)
			}
		}
		for path := range lines {
			if top, _, _ := strings.Cut(path, "."); !slices.Contains(keys, strings.Split(top, "[")[0]) {
				t.Fatalf("key %q was accepted", path)
			}
		}
	})
}
