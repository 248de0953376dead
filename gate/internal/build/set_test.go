package build

import (
	"errors"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// TestSetKeepsTheFirst: the head is added first. A kernel of its name, and an
// artifact of one identity, are the head's.
func TestSetKeepsTheFirst(t *testing.T) {
	one, two := evidence.Identity{Code: "c1", Host: "h"}, evidence.Identity{Code: "c2", Host: "h"}
	head, base, gone := &manifest.Kernel{Name: "op/k", File: "head"}, &manifest.Kernel{Name: "op/k", File: "base"}, &manifest.Kernel{Name: "op/gone"}
	first := &Artifact{Identity: one, Library: "first.so"}
	var s Set
	if s.Artifact(one) != nil || s.Kernel("op/k") != nil {
		t.Error("an empty set holds something")
	}
	s.Add()
	s.Add(Result{Kernel: head, Artifact: first}, Result{Kernel: head, Err: errors.New("it does not compile")})
	s.Add(Result{Kernel: base, Artifact: &Artifact{Identity: one, Library: "again.so"}}, Result{Kernel: base, Artifact: &Artifact{Identity: two}}, Result{Kernel: gone, Err: errors.New("neither does this")})
	if s.Artifact(one) != first || s.Kernel("op/k") != head {
		t.Errorf("%+v, %+v", s.Artifact(one), s.Kernel("op/k"))
	}
	if s.Artifact(two) == nil || s.Kernel("op/gone") != gone {
		t.Error("what only the base has is lost")
	}
	if s.Artifact(evidence.Identity{}) != nil || s.Artifact(evidence.Identity{Code: "c1"}) != nil || s.Kernel("op") != nil {
		t.Error("an unknown name has something")
	}
}
