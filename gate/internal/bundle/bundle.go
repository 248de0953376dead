// Package bundle is what a run that nobody trusts hands to one that judges: one
// file with the kernels of a change as plain data, and the records that were
// measured. Everything in a bundle is a claim. It is read in memory, nothing of
// it is written to a disk, and what is odd in any way is refused as a whole.
package bundle

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/kernelgate/gate/gate/internal/evidence"
)

// schema names the layout of a Manifest.
const schema = "gate/bundle/v1"

// Bounds of a bundle. A record is bounded by evidence.MaxRecord besides.
const (
	MostBytes    = 64 << 20  // as a file
	mostUnpacked = 256 << 20 // of all files in it
	mostManifest = 16 << 20
	mostFiles    = 1 << 14
	mostKernels  = 10_000
	mostName     = 1024
	mostText     = 64 << 10
	mostCases    = 256
	mostFuncs    = 4096
)

const manifestName = "manifest.json"

// A Manifest says what is in a bundle.
type Manifest struct {
	Schema  string   `json:"schema"`
	Head    string   `json:"head"` // commit of the change, to be compared with GitHub's
	Base    string   `json:"base"` // commit that it was measured against
	Shard   Shard    `json:"shard"`
	Why     string   `json:"why,omitempty"` // what kept the run from measuring
	Kernels []Kernel `json:"kernels"`
	Gone    []Gone   `json:"gone,omitempty"`
	Files   []File   `json:"files"`
}

// A Shard is one of several bundles of a change, from 1.
type Shard struct {
	Number int `json:"number"`
	Of     int `json:"of"`
}

// A Kernel is what a run says of one kernel of the head on one architecture.
type Kernel struct {
	Name   string   `json:"name"`
	File   string   `json:"file"` // its kernel.yaml
	Source string   `json:"source,omitempty"`
	Line   int      `json:"line,omitempty"`
	Arch   string   `json:"arch"`
	Op     string   `json:"op"`
	Code   string   `json:"code_id,omitempty"`
	Host   string   `json:"host_id,omitempty"`
	Cases  []string `json:"cases"`
	Funcs  []Func   `json:"functions,omitempty"` // its __global__ functions
	Left   []string `json:"left_out,omitempty"`  // functions that the base judges and entries: leaves out
	Why    string   `json:"why,omitempty"`       // why it was not built
	Detail string   `json:"detail,omitempty"`
	Blame  bool     `json:"blame,omitempty"`

	Was     *Was      `json:"was,omitempty"`     // what its kernel.yaml declares of the base
	Retired []Part    `json:"retired,omitempty"` // the same
	Brought []Brought `json:"brought,omitempty"` // cases that the base's ops lack
}

// A Was is what a kernel declares that the base calls it.
type Was struct {
	Kernel string `json:"kernel,omitempty"`
	Arch   string `json:"arch,omitempty"`
}

// A Part is a case, an entry or an architecture that a kernel declares retired.
type Part struct {
	Case   string `json:"case,omitempty"`
	Entry  string `json:"entry,omitempty"`
	Arch   string `json:"arch,omitempty"`
	Reason string `json:"reason"`
}

// A Gone is a kernel of the base that the change declares retired.
type Gone struct {
	Name   string `json:"name"`
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// A Brought is a case that no op of the base has. Harness identifies how it was
// measured; it is "" for one that nobody measured, because the base has its op.
type Brought struct {
	Case      string `json:"case"`
	Harness   string `json:"harness,omitempty"`
	CheckOnly bool   `json:"check_only,omitempty"`
}

// A Func is a function as it is written, with its parameters, and its bare name.
type Func struct {
	Name  string `json:"name"`
	Short string `json:"short"`
}

// A File is one of the files beside the manifest.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
}

// An Entry is one record as a store keeps it: its JSON, and its raw inputs by
// the names of their files.
type Entry struct {
	Record []byte
	Raw    map[string][]byte
}

// A Bundle is a bundle that was read.
type Bundle struct {
	Manifest
	SHA256   string // of the file
	entries  map[evidence.Key]Entry
	machines []evidence.Machine
}

// Entry is the record under a key; false where there is none.
func (b *Bundle) Entry(k evidence.Key) (Entry, bool) {
	e, ok := b.entries[k]
	return e, ok
}

// Declaring are the files that are said to declare something of the base.
func (b *Bundle) Declaring() []string {
	var out []string
	for _, k := range b.Kernels {
		if (k.Was != nil || len(k.Retired) > 0) && !slices.Contains(out, k.File) {
			out = append(out, k.File)
		}
	}
	for _, g := range b.Gone {
		out = append(out, g.File)
	}
	return out
}

// Machines are those that records say they were measured on.
func (b *Bundle) Machines() []evidence.Machine { return b.machines }

// Write makes the file. Same input, same bytes.
func Write(m Manifest, entries []Entry) ([]byte, error) {
	m.Schema, m.Files = schema, []File{}
	files := map[string][]byte{}
	for _, e := range entries {
		sum := sha256.Sum256(e.Record)
		files["records/"+hex.EncodeToString(sum[:])+".json"] = e.Record
		for name, data := range e.Raw {
			files["raw/"+name] = data
		}
	}
	names := slices.Sorted(maps.Keys(files))
	for _, n := range names {
		sum := sha256.Sum256(files[n])
		m.Files = append(m.Files, File{n, hex.EncodeToString(sum[:]), int64(len(files[n]))})
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, fmt.Errorf("writing a bundle: %w", err)
	}
	files[manifestName] = data
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, n := range append([]string{manifestName}, names...) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: n, Method: zip.Deflate})
		if err == nil {
			_, err = f.Write(files[n])
		}
		if err != nil {
			return nil, fmt.Errorf("writing a bundle: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("writing a bundle: %w", err)
	}
	if _, err := Read(buf.Bytes()); err != nil {
		return nil, fmt.Errorf("the bundle would not be read back: %w", err)
	}
	return buf.Bytes(), nil
}
