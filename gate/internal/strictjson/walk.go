package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var (
	errShort = errors.New("the JSON is cut short")
	errOdd   = errors.New("the JSON has an error of syntax")
)

// A walker goes through one value and fails on an object that names a key twice:
// the standard decoder keeps the last one. It leaves it to the standard decoder,
// which reads the value next, to look into numbers, words and texts.
type walker struct {
	data    []byte
	at      int
	objects int                          // so far
	last    [maxDepth + 1]map[string]int // the object in which a key stood last, by depth and key
}

// value goes over the next value.
func (w *walker) value(depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("the JSON is nested deeper than %d", maxDepth)
	}
	switch c := w.next(); c {
	case 0:
		return errShort
	case '{':
		w.at++
		return w.object(depth)
	case '[':
		w.at++
		return w.array(depth)
	case '"':
		_, _, err := w.text()
		return err
	}
	from := w.at
	for w.at < len(w.data) && !strings.ContainsRune(",:]}\"[{ \t\r\n", rune(w.data[w.at])) {
		w.at++
	}
	if w.at == from {
		return errOdd
	}
	return nil
}

// next is the next byte that is not a space, 0 at the end.
func (w *walker) next() byte {
	for ; w.at < len(w.data); w.at++ {
		switch c := w.data[w.at]; c {
		case ' ', '\t', '\r', '\n':
		case 0:
			return 1 // no JSON begins so
		default:
			return c
		}
	}
	return 0
}

// end goes over what follows a part of an object or an array, and reports
// whether it was the last one.
func (w *walker) end(closing byte) (bool, error) {
	switch c := w.next(); c {
	case 0:
		return false, errShort
	case ',', closing:
		w.at++
		return c == closing, nil
	}
	return false, errOdd
}

func (w *walker) array(depth int) error {
	if w.next() == ']' {
		w.at++
		return nil
	}
	for {
		if err := w.value(depth + 1); err != nil {
			return err
		}
		if last, err := w.end(']'); last || err != nil {
			return err
		}
	}
}

func (w *walker) object(depth int) error {
	if w.next() == '}' {
		w.at++
		return nil
	}
	w.objects++
	number := w.objects
	if len(w.last[depth]) > maxKeys || w.last[depth] == nil {
		w.last[depth] = map[string]int{}
	}
	for keys := 1; ; keys++ {
		if err := w.key(w.last[depth], number); err != nil {
			return err
		}
		if keys > maxKeys {
			return fmt.Errorf("an object has more than %d keys", maxKeys)
		}
		if err := w.value(depth + 1); err != nil {
			return err
		}
		if last, err := w.end('}'); last || err != nil {
			return err
		}
	}
}

// key goes over a key and its colon. An object that stands in another of the same
// depth has ended before that one goes on, so that a map serves all of a depth.
func (w *walker) key(last map[string]int, object int) error {
	switch w.next() {
	case 0:
		return errShort
	case '"':
	default:
		return errOdd
	}
	from := w.at
	name, plain, err := w.text()
	if err != nil {
		return err
	}
	shown := name
	if !plain {
		var s string
		if json.Unmarshal(w.data[from:w.at], &s) != nil {
			return errOdd
		}
		shown, name = []byte(s), []byte(foldKey(s))
	}
	if last[string(name)] == object {
		return fmt.Errorf("the key %q appears twice in one object", shown)
	}
	last[string(name)] = object
	switch w.next() {
	case 0:
		return errShort
	case ':':
		w.at++
		return nil
	}
	return errOdd
}

// text goes over a text and returns what stands between the quotes. A plain one
// is what it means, and is its own folded form.
func (w *walker) text() (inside []byte, plain bool, err error) {
	w.at++
	from := w.at
	plain = true
	for ; w.at < len(w.data); w.at++ {
		switch c := w.data[w.at]; {
		case c == '"':
			w.at++
			return w.data[from : w.at-1], plain, nil
		case c == '\\':
			w.at++ // whatever follows it ends no text
			plain = false
		case c >= 0x80 || c >= 'A' && c <= 'Z':
			plain = false
		}
	}
	w.at = len(w.data)
	return nil, false, errShort
}

// foldKey makes keys equal that the standard decoder takes for one field. By
// way of the upper case, because 'ſ' is lower case already and means 's' there.
func foldKey(key string) string { return strings.ToLower(strings.ToUpper(key)) }

// syntax is what the standard decoder says of a text that is not JSON.
func syntax(data []byte) error {
	var raw json.RawMessage
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&raw); err != nil {
		return err
	}
	return errOdd
}
