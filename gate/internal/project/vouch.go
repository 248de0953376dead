package project

import (
	"context"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// contradicted says which declaration in a bundle is not one that the head's own
// kernel.yaml makes, where a reviewer sees it; "" where all are.
func (p *Project) contradicted(ctx context.Context, claims []Claim, gone []Departure, pull Pull) string {
	said := slices.Clone(gone)
	for _, c := range claims {
		said = append(said, Departure{Name: c.Name, File: c.File})
	}
	for i, d := range said {
		want := manifest.Declaration{Gone: d.Reason}
		if i >= len(gone) {
			want = claims[i-len(gone)].Declaration
		}
		if reflect.DeepEqual(want, manifest.Declaration{}) {
			continue
		}
		text, err := p.ofHead(ctx, d.File, pull)
		var got manifest.Declaration
		if err == nil {
			got, err = manifest.Declared([]byte(text), d.File, d.Name)
		}
		if err == nil && !reflect.DeepEqual(got, want) {
			err = fmt.Errorf("%s of the change does not make it", d.File)
		}
		if err != nil {
			return printable.Cut(fmt.Sprintf("the bundle holds a declaration of %s, and it is not known that the change makes it: %v", d.Name, err), 400)
		}
	}
	return ""
}

// mostText bounds a kernel.yaml of a head that is not checked out.
const mostText = 64 << 10

// ofHead is a file of the head: as GitHub showed it, or, where GitHub was not
// asked, of the commit that the bundle names, if this repository has it.
func (p *Project) ofHead(ctx context.Context, name string, pull Pull) (string, error) {
	if pull.Texts != nil {
		text, ok := pull.Texts[name]
		if !ok {
			return "", fmt.Errorf("%s of the change cannot be read", name)
		}
		return text, nil
	}
	dir, err := p.headTree(ctx, pull.Head)
	if err != nil {
		return "", err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostText))
	return string(text), err
}
