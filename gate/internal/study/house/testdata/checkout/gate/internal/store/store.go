package store

import (
	"os"
	"unicode"
)

// A Store is used without its name: by what Open returns.
type Store struct{ name string }

// Open is used.
func Open(name string) *Store { return &Store{name} }

// Name is used.
func (s *Store) Name() string { return s.name }

// Dir is used by a test of another package only.
func (s *Store) Dir() string { return s.name }

// Keep is not used.
func (s *Store) Keep(data []byte) error {
	f, err := os.CreateTemp("", "")
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), s.name)
}

// Error is called through an interface.
func (s *Store) Error() string { return "" }

type statEntry struct {
	Size  int64
	Mtime int64
}

func clean(r rune) bool { return unicode.IsControl(r) }
