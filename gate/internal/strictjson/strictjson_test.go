package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

type record struct {
	Name  string            `json:"name"`
	Parts []map[string]int  `json:"parts"`
	Free  map[string]string `json:"free"`
	Any   any               `json:"any"`
}

func TestDecode(t *testing.T) {
	var r record
	text := `{"name": "é\u0000", "parts": [{"a": 1}, {"a": 2}], "free": {"x": "", "y": ""}, "any": 1e3}` + "\n"
	if err := Decode([]byte(text), len(text), &r); err != nil || r.Name != "é\x00" || len(r.Parts) != 2 || len(r.Free) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	nested := func(n int) string { return `{"any": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" }
	var many []string
	for i := range maxKeys + 1 {
		many = append(many, fmt.Sprintf(`"k%d":1`, i))
	}
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "the JSON is cut short"},
		{"cut", `{"name": "a"`, "the JSON is cut short"},
		{"cut in a text", `{"name": "a`, "the JSON is cut short"},
		{"second value", `{} {}`, "data follows the JSON"},
		{"garbage after it", `{}x`, "data follows the JSON"},
		{"unknown field", `{"nam": "a"}`, `json: unknown field "nam"`},
		{"field twice", `{"name": "a", "name": "b"}`, `the key "name" appears twice in one object`},
		{"field twice in another case", `{"NAME": "a", "name": "b"}`, `the key "name" appears twice in one object`},
		{"field twice with a long s", `{"part\u017f": [], "parts": []}`, `the key "parts" appears twice in one object`},
		{"key twice below", `{"parts": [{"a": 1, "a": 2}]}`, `the key "a" appears twice in one object`},
		{"key twice, once escaped", `{"free": {"a": "", "\u0061": ""}}`, `the key "a" appears twice in one object`},
		{"too many keys", "{" + strings.Join(many, ",") + "}", "an object has more than 16384 keys"},
		{"not UTF-8", "{\"name\": \"\xff\"}", "the JSON is not UTF-8"},
		{"deep", strings.Repeat("[", 5000), "the JSON is nested deeper than 64"},
		{"deep and closed", nested(65), "the JSON is nested deeper than 64"},
		{"another type", `[]`, "json: cannot unmarshal array into Go value of type strictjson.record"},
		{"too large", `{"name": "` + strings.Repeat("x", 1000000) + `"}`, "the JSON is larger than 999999 bytes"},
	} {
		var r record
		if err := Decode([]byte(c.text), 999999, &r); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	if err := Decode([]byte(nested(64)), 999999, &record{}); err != nil {
		t.Errorf("as deep as is allowed: %v", err)
	}
}

// byTokens finds a key that stands twice in the way of the standard decoder, which
// is slow, but reads keys as the decoder of fields does.
func byTokens(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return errors.New("too deep")
	}
	tok, err := dec.Token()
	delim, ok := tok.(json.Delim)
	if err != nil || !ok {
		return err
	}
	seen := map[string]bool{}
	for dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name := foldKey(key.(string))
			if seen[name] {
				return errors.New("twice")
			}
			seen[name] = true
		}
		if err := byTokens(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// FuzzWalk: of what is JSON, the walker refuses exactly what the standard
// decoder's tokens show to have a key twice or to be too deep.
func FuzzWalk(f *testing.F) {
	for _, s := range []string{`{"a":1,"\u0061":2}`, `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, `{"A":1,"a":2}`, `{"ſ":1,"s":2}`, `[{"K":1,"k":2}]`, `{"a\\":1,"a\\\"":2}`, `[1,"",null,[]]`, `{"a":1,}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w := walker{data: data}
		got := w.value(0)
		if !json.Valid(data) || !utf8.Valid(data) {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		if want := byTokens(dec, 0); (got == nil) != (want == nil) {
			t.Fatalf("%q: %v, by tokens %v", data, got, want)
		}
		if got == nil && len(bytes.TrimSpace(data[w.at:])) > 0 {
			t.Fatalf("%q: ended at %d", data, w.at)
		}
	})
}

// BenchmarkDecode reads objects of many keys.
func BenchmarkDecode(b *testing.B) {
	part := `{"name":"a text of some words","parts":[` + strings.TrimSuffix(strings.Repeat(`{"one":1,"two":2,"three":3},`, 1000), ",") + `]}`
	b.SetBytes(int64(len(part)))
	for b.Loop() {
		var r record
		if err := Decode([]byte(part), len(part), &r); err != nil {
			b.Fatal(err)
		}
	}
}

// What is accepted is what the standard decoder reads, and it is read again
// from its encoding.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"name":"a"}`, `{"any":{"b":[1,null,true]}}`, `{"free":{"a":"","A":""}}`, `{}{}`, "{\"name\":\"\xff\"}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var strict, standard, again record
		if Decode(data, 1<<20, &strict) != nil {
			return
		}
		if err := json.Unmarshal(data, &standard); err != nil || !reflect.DeepEqual(strict, standard) {
			t.Fatalf("%+v, the standard decoder reads %+v, %v", strict, standard, err)
		}
		text, err := json.Marshal(strict)
		if err != nil {
			t.Fatal(err)
		}
		if err := Decode(text, 1<<30, &again); err != nil || !reflect.DeepEqual(strict, again) {
			t.Fatalf("%s: %v", text, err)
		}
	})
}
