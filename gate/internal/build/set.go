package build

import (
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// A Set is what was built, for whoever measures it. Artifacts of one identity
// are one: that is what an identity says.
type Set struct {
	artifacts map[evidence.Identity]*Artifact
	kernels   map[string]*manifest.Kernel // of the head, by name
}

// Add takes results over. The first artifact of an identity, and the first
// kernel of a name, stay.
func (s *Set) Add(results ...Result) {
	if s.artifacts == nil {
		s.artifacts, s.kernels = map[evidence.Identity]*Artifact{}, map[string]*manifest.Kernel{}
	}
	for _, r := range results {
		if r.Artifact != nil && s.artifacts[r.Artifact.Identity] == nil {
			s.artifacts[r.Artifact.Identity] = r.Artifact
		}
		if s.kernels[r.Kernel.Name] == nil {
			s.kernels[r.Kernel.Name] = r.Kernel
		}
	}
}

// Artifact is what has an identity, nil where nothing does.
func (s *Set) Artifact(id evidence.Identity) *Artifact { return s.artifacts[id] }

// Kernel is the kernel of a name, the head's before the base's.
func (s *Set) Kernel(name string) *manifest.Kernel { return s.kernels[name] }
