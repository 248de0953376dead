// Package strictjson reads JSON that others wrote. What the standard decoder
// accepts without a word is an error: unknown fields, a key that stands twice,
// text that is not UTF-8, and whatever follows the value.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	w := walker{data: data}
	if err := w.value(0); errors.Is(err, errOdd) {
		return syntax(data)
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
