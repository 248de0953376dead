// Package yamlfile decodes the files that users write, strictly: one document,
// no unknown or repeated key, no anchors, no number that is not finite. Every
// refusal names file and line and, for a misspelt key, what was probably meant.
package yamlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/agnivade/levenshtein"
	"gopkg.in/yaml.v3"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// maxSize bounds a file.
const maxSize = 1 << 20

// An Error is a mistake in a user's file.
type Error struct {
	File   string
	Line   int // 0 when the file as a whole is meant
	Msg    string
	Advice string
}

func (e *Error) Error() string {
	file := printable.Line(e.File)
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", file, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", file, e.Line, e.Msg)
}

// ExitCode is that of a file of the user's that is invalid.
func (e *Error) ExitCode() int { return exit.Usage }

// Hint says what was probably meant.
func (e *Error) Hint() string { return e.Advice }

// A Node is a place in the text, for a type that decodes itself.
type Node = yaml.Node

// Scalar is the kind of a node that is one text or number.
const Scalar = yaml.ScalarNode

// Lines maps the path of a key ("rules[2].metric") to its line, so that a
// later check of meaning can still point at the text.
type Lines map[string]int

// Read decodes the file at path; name is what messages call it.
func Read(path, name string, into any) (Lines, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would be waited for
	if err != nil {
		return nil, &Error{File: name, Msg: "cannot be read: " + reason(err)}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, &Error{File: name, Msg: "cannot be read: it is a pipe, a socket or a device"}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return nil, &Error{File: name, Msg: "cannot be read: " + reason(err)}
	}
	return Decode(data, name, into)
}

func reason(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

// Decode decodes data into a pointer to a struct.
func Decode(data []byte, name string, into any) (Lines, error) {
	if len(data) > maxSize {
		return nil, &Error{File: name, Msg: fmt.Sprintf("is larger than %d bytes", maxSize)}
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &Error{File: name, Msg: "is empty"}
		}
		return nil, fromYAML(name, err)
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{File: name, Line: second.Line, Msg: "holds a second document, which would be ignored"}
	}
	if doc.Content[0].Tag == "!!null" {
		return nil, &Error{File: name, Msg: "is empty"}
	}
	w := walker{file: name, lines: Lines{}}
	if err := w.check(doc.Content[0], reflect.TypeOf(into).Elem(), ""); err != nil {
		return nil, err
	}
	if err := doc.Decode(into); err != nil {
		return nil, fromYAML(name, err)
	}
	return w.lines, nil
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?(?:unmarshal errors:\s*)?line (\d+): (.*)`)

// fromYAML turns the library's message into ours. A type that decodes itself
// says by an *Error what is wrong.
func fromYAML(name string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		own.File = name
		return own
	}
	text := err.Error()
	var te *yaml.TypeError
	if errors.As(err, &te) && len(te.Errors) > 0 {
		text = te.Errors[0]
	}
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ := strconv.Atoi(m[1])
		msg, hint := plain(m[2])
		if strings.HasPrefix(msg, "did not find expected") {
			line++ // the library counts the lines of these from 0
		}
		return &Error{File: name, Line: line, Msg: msg, Advice: cmp.Or(hint, syntaxHint(msg))}
	}
	msg, hint := plain(strings.TrimPrefix(text, "yaml: "))
	return &Error{File: name, Msg: msg, Advice: hint}
}

// syntaxHint says what is usually wrong where the text is not YAML.
func syntaxHint(msg string) string {
	switch {
	case strings.Contains(msg, "tab character"), strings.Contains(msg, "cannot start any token"):
		return "YAML is indented with spaces"
	case strings.Contains(msg, "',' or"):
		return "the bracket that opens here is not closed, or a comma is missing"
	case strings.Contains(msg, "expected key"), strings.Contains(msg, "'-' indicator"):
		return "every entry of a list begins with '- ', and all of them in one column"
	}
	return ""
}

var cannotUnmarshal = regexp.MustCompile("cannot unmarshal !!(\\w+)(?: `([^`]*)`)? into (\\S+)")

var kinds = map[string]string{"str": "text", "int": "a number", "float": "a number", "seq": "a list", "map": "a mapping", "bool": "true or false", "null": "nothing"}

func plain(msg string) (text, hint string) {
	m := cannotUnmarshal.FindStringSubmatch(msg)
	if m == nil {
		return msg, ""
	}
	want := "text"
	switch {
	case strings.HasPrefix(m[3], "[]"):
		want = "a list"
	case strings.HasPrefix(m[3], "map"), strings.Contains(m[3], "."):
		want = "a mapping"
	case strings.HasPrefix(m[3], "int"), strings.HasPrefix(m[3], "float"):
		want = "a number"
	case m[3] == "bool":
		want = "true or false"
	}
	got := kinds[m[1]]
	if m[2] != "" {
		got = fmt.Sprintf("%s (%q)", got, m[2])
	}
	if want == "a list" && m[2] != "" {
		hint = "[" + m[2] + "] is a list of one"
	}
	return fmt.Sprintf("%s is needed here, not %s", want, got), hint
}

type walker struct {
	file  string
	lines Lines
}

var unmarshaler = reflect.TypeOf((*yaml.Unmarshaler)(nil)).Elem()

// check walks the text beside the type it is decoded into.
func (w *walker) check(n *yaml.Node, t reflect.Type, path string) error {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return w.fail(n, "anchors and aliases are not accepted here", "")
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if n.Kind == yaml.ScalarNode {
		return w.scalar(n, t.Kind())
	}
	if fields, _ := fieldsOf(t); reflect.PointerTo(t).Implements(unmarshaler) && len(fields) == 0 && t.Kind() != reflect.Slice {
		return nil // a type that decodes itself; one with keys or elements is checked by them
	}
	switch {
	case n.Kind == yaml.SequenceNode && t.Kind() == reflect.Slice:
		return w.sequence(n, t.Elem(), path)
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Struct:
		return w.structure(n, t, path)
	case n.Kind == yaml.MappingNode && t.Kind() == reflect.Map:
		return w.mapping(n, t.Elem(), path)
	}
	return nil // the decoder words the mismatch
}

// scalar refuses numbers that are not finite, and those that the decoder would
// cut to a whole one without a word.
func (w *walker) scalar(n *yaml.Node, kind reflect.Kind) error {
	if n.Tag != "!!float" {
		return nil
	}
	var f float64
	if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return w.fail(n, fmt.Sprintf("%q is not a finite number: no value would ever exceed it", n.Value), "")
	}
	if kind == reflect.Int || kind == reflect.Int64 {
		return w.fail(n, fmt.Sprintf("a whole number is needed here, not %q", n.Value), "")
	}
	return nil
}

func (w *walker) sequence(n *yaml.Node, elem reflect.Type, path string) error {
	for i, item := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		w.lines[at] = item.Line
		if item.Tag == "!!null" {
			return w.fail(item, "an entry of the list has no value", "")
		}
		if err := w.check(item, elem, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) mapping(n *yaml.Node, elem reflect.Type, path string) error {
	return w.pairs(n, path, func(*yaml.Node) (reflect.Type, error) { return elem, nil })
}

func (w *walker) structure(n *yaml.Node, t reflect.Type, path string) error {
	fields, names := fieldsOf(t)
	return w.pairs(n, path, func(key *yaml.Node) (reflect.Type, error) {
		ft, ok := fields[key.Value]
		if !ok {
			return nil, w.fail(key, fmt.Sprintf("unknown key %q", key.Value), keyHint(key.Value, names))
		}
		return ft, nil
	})
}

// keyHint says what an unknown key was meant to be.
func keyHint(key string, known []string) string {
	if name, value, ok := strings.Cut(key, ":"); ok && value != "" && slices.Contains(known, name) {
		return fmt.Sprintf("a space is missing after the colon: %s: %s", name, value)
	}
	return DidYouMean(key, known, "known keys here: "+strings.Join(known, ", "))
}

// pairs checks keys and values; typeOf says what a key's value has to be.
func (w *walker) pairs(n *yaml.Node, path string, typeOf func(key *yaml.Node) (reflect.Type, error)) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		t, err := typeOf(key)
		if err != nil {
			return err
		}
		if seen[key.Value] {
			return w.fail(key, fmt.Sprintf("key %q appears twice", key.Value), "")
		}
		seen[key.Value] = true
		w.lines[join(path, key.Value)] = key.Line
		if value.Tag == "!!null" {
			return w.fail(key, fmt.Sprintf("key %q has no value", key.Value), "")
		}
		if err := w.check(value, t, join(path, key.Value)); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) fail(n *yaml.Node, msg, hint string) error {
	return &Error{File: w.file, Line: n.Line, Msg: msg, Advice: hint}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func fieldsOf(t reflect.Type) (map[string]reflect.Type, []string) {
	fields := map[string]reflect.Type{}
	var names []string
	if t.Kind() != reflect.Struct {
		return fields, names
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == "" || name == "-" {
			continue
		}
		fields[name] = t.Field(i).Type
		names = append(names, name)
	}
	return fields, names
}

// DidYouMean names what a misspelt word most likely meant; where nothing is
// near, it is otherwise.
func DidYouMean(word string, known []string, otherwise string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// Nearest is the known name that a misspelt one most likely meant, or "".
func Nearest(word string, known []string) string {
	best, bestDistance := "", len(word)/3+2
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(word), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}
