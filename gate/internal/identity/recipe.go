package identity

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"slices"
	"strings"
)

// The recipe of each kind of id. The name goes into the hash first, so that an id of another recipe, or of another
// kind, is never equal by accident; change the number with the recipe.
const (
	codeRecipe      = "gate code id 2"
	hostRecipe      = "gate host id 2"
	directiveRecipe = "gate directives 2"
	sourceRecipe    = "gate source hash 1"
)

// A recipe hashes fields, each with its length in front, so that no two lists of fields give the same bytes.
type recipe struct {
	h   hash.Hash
	buf []byte
}

const recipeBuffer = 32 << 10

func newRecipe(name string) *recipe {
	r := &recipe{h: sha256.New(), buf: make([]byte, 0, 256)}
	r.text(name)
	return r
}

func (r *recipe) bytes(b []byte) {
	r.buf = binary.AppendUvarint(r.buf, uint64(len(b)))
	r.raw(b)
}

func (r *recipe) text(s string) {
	r.buf = binary.AppendUvarint(r.buf, uint64(len(s)))
	r.buf = append(r.buf, s...)
	r.flushIfFull()
}

func (r *recipe) number(v uint64) {
	r.buf = binary.AppendUvarint(r.buf, v)
	r.flushIfFull()
}

// token hashes a token with its kind.
func (r *recipe) token(k kind, text []byte) {
	if len(text) > recipeBuffer/2 {
		r.number(uint64(k))
		r.bytes(text)
		return
	}
	b := append(r.buf, byte(k))
	b = binary.AppendUvarint(b, uint64(len(text)))
	r.buf = append(b, text...)
	r.flushIfFull()
}

// list hashes a set of byte strings: its order in memory does not count, how often one occurs does.
func (r *recipe) list(items [][]byte) {
	slices.SortFunc(items, bytes.Compare)
	r.number(uint64(len(items)))
	for _, b := range items {
		r.bytes(b)
	}
}

func (r *recipe) raw(b []byte) {
	if len(b) > recipeBuffer/2 {
		r.flush()
		r.h.Write(b)
		return
	}
	r.buf = append(r.buf, b...)
	r.flushIfFull()
}

func (r *recipe) flushIfFull() {
	if len(r.buf) > recipeBuffer/2 {
		r.flush()
	}
}

func (r *recipe) flush() {
	r.h.Write(r.buf)
	r.buf = r.buf[:0]
}

func (r *recipe) sum() []byte {
	r.flush()
	return r.h.Sum(nil)
}

func (r *recipe) hex() string { return hex.EncodeToString(r.sum()) }

// scheme begins every id of a kernel, so that those of another scheme are told
// apart; it changes with any recipe.
const scheme = "v2"

// Current reports whether an id is one of this gate's scheme.
func Current(id string) bool {
	return len(id) == len(scheme)+2*sha256.Size && strings.HasPrefix(id, scheme)
}

// Named reports whether a name that begins with an id, or is its beginning,
// begins with one of this gate's scheme.
func Named(name string) bool { return strings.HasPrefix(name, scheme) }

// Combine makes one id of several parts, in their order, under the name of what it identifies.
func Combine(what string, parts ...string) string {
	r := newRecipe("gate combined id")
	r.text(what)
	for _, p := range parts {
		r.text(p)
	}
	return scheme + r.hex()
}
