// Package strictjson reads JSON that others wrote. What the standard decoder
// lets pass in silence is an error: unknown fields, a key that stands twice,
// text that is not UTF-8, and whatever follows the value.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of the nesting, and of the keys of one object, which are remembered.
const (
	maxDepth = 64
	maxKeys  = 1 << 14
)

// Decode reads one value of at most so many bytes.
func Decode(data []byte, most int, into any) error {
	if len(data) > most {
		return fmt.Errorf("the JSON is larger than %d bytes", most)
	}
	if !utf8.Valid(data) {
		return errors.New("the JSON is not UTF-8")
	}
	keys := json.NewDecoder(bytes.NewReader(data))
	keys.UseNumber()
	if err := walk(keys, 0); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON is cut short")
	} else if err != nil {
		return err
	}
	return Fields(data, into)
}

// Fields refuses unknown fields and what follows the value, and nothing else:
// it is for an UnmarshalJSON, whose part of a value Decode has gone through.
func Fields(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return errors.New("data follows the JSON")
	}
	return nil
}

// walk fails on an object that names a key twice: the standard decoder keeps
// the last one.
func walk(dec *json.Decoder, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the JSON is nested deeper than %d", maxDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	delim, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	seen := map[string]bool{}
	for dec.More() {
		if delim == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name := foldKey(key)
			if seen[name] {
				return fmt.Errorf("the key %q appears twice in one object", key)
			}
			if seen[name] = true; len(seen) > maxKeys {
				return fmt.Errorf("an object has more than %d keys", maxKeys)
			}
		}
		if err := walk(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token()
	return err
}

// foldKey makes keys equal that the standard decoder takes for one field. By
// way of the upper case, because 'ſ' is lower case already and means 's' there.
func foldKey(key json.Token) string {
	s, _ := key.(string)
	return strings.ToLower(strings.ToUpper(s))
}
