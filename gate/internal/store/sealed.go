package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
)

// maxSealed bounds the raw inputs of a record that somebody hands in, unpacked.
const maxSealed = 64 << 20

// Unseal reads a record that lies in no store as if it lay in one: its JSON
// under a key, and its raw inputs as a store keeps them, by the names of their
// files. Nothing is written.
func (a Audit) Unseal(k evidence.Key, data []byte, packed map[string][]byte) (*evidence.Record, error) {
	r, err := evidence.Decode(data)
	if err != nil {
		return nil, err
	}
	if err := belongs(r, k); err != nil {
		return nil, err
	}
	if err := errors.Join(a.complete().dated(r), named(r)); err != nil {
		return nil, err
	}
	if len(packed) != len(r.Raw) {
		return nil, errors.New("it has other raw inputs than it names")
	}
	for _, raw := range r.Raw {
		data := packed[raw.Name]
		if sum := sha256.Sum256(data); int64(len(data)) != raw.Bytes || hex.EncodeToString(sum[:]) != raw.SHA256 {
			return nil, fmt.Errorf("its raw input %s is not what the record says", raw.Name)
		}
	}
	return r, a.contents(r, packed, maxSealed)
}

// Sealed returns the record under a key as a store keeps it, to be handed on.
func (s *Shelf) Sealed(k evidence.Key) (data []byte, packed map[string][]byte, err error) {
	for _, from := range s.Read {
		r, err := from.Get(k)
		if err != nil || !complete(r) {
			continue
		}
		rel, err := place(k)
		if err != nil {
			return nil, nil, err
		}
		path := filepath.Join(from.dir, rel)
		if data, err = disk.ReadFile(path, evidence.MaxRecord); err != nil {
			return nil, nil, err
		}
		if r, err = evidence.Decode(data); err != nil {
			return nil, nil, err
		}
		packed, err = readRaw(filepath.Dir(path), r)
		return data, packed, err
	}
	return nil, nil, errNotFound
}
