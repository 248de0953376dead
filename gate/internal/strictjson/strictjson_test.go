package strictjson

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
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
