package main

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

// A part is what stands between two markers of a document.
type part struct {
	file, name string
	text       []byte
}

// parts are all that the command writes.
func (s scene) parts(shapes []shape) ([]part, error) {
	long, err := s.long(shapes)
	if err != nil {
		return nil, err
	}
	parts := []part{
		{"kernels/README.md", "ladder", s.ladder()},
		{"kernels/README.md", "libraries", s.libraries()},
		{"kernels/README.md", "long", long},
		{"kernels/attention/r14_fa3_ws/README.md", "long", long},
		{"kernels/fixtures/README.md", "fixtures", s.fixtures()},
		{"kernels/floor/README.md", "floor", s.floor()},
	}
	var before *verdict.KernelVerdict
	for _, k := range s.rungs() {
		parts = append(parts, part{path.Join("kernels", k.Name, "README.md"), "measured", s.measured(k, before)})
		before = &k
	}
	return parts, nil
}

func (p part) write(check bool) error {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return err
	}
	next, err := p.in(text)
	if err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	if !check {
		return disk.WriteFile(p.file, next)
	}
	if !bytes.Equal(text, next) {
		return fmt.Errorf("%s, %s: %w\n%s", p.file, p.name, errStale, p.text)
	}
	return nil
}

// in puts the part in the place of what stands between its markers.
func (p part) in(text []byte) ([]byte, error) {
	begin, end := "<!-- "+p.name+": written by gate/internal/study/ladder -->\n", "<!-- end of "+p.name+" -->\n"
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, fmt.Errorf("the markers %q and %q are missing", begin, end)
	}
	return bytes.Join([][]byte{head, []byte(begin), p.text, []byte(end), tail}, nil), nil
}

// A shape is a case of the long sequences, with the work that the op states of it.
type shape struct {
	name, dims string
	flops      float64
}

// shapesOf are those of the kernel for long sequences, in a checkout.
func shapesOf(root string) ([]shape, error) {
	set, err := manifest.Load(root, []string{"kernels/" + longKernel + "/kernel.yaml"})
	if err != nil {
		return nil, err
	}
	k, err := set.Named(longKernel)
	if err != nil {
		return nil, err
	}
	var out []shape
	for _, c := range k.Cases {
		if c.CheckOnly {
			continue
		}
		var dims []string
		for _, d := range c.Dims {
			dims = append(dims, fmt.Sprint(d.Size))
		}
		out = append(out, shape{c.Name, strings.Join(dims, "×"), float64(c.Work.Flops)})
	}
	return out, nil
}
