package collect

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/compare"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/plan"
)

// A library that cannot be had here takes its own tasks and tests away, and says
// why; the others keep their places.
func TestTasksWithoutTheirLibrary(t *testing.T) {
	head, ref := evidence.Identity{Code: "1", Host: "1"}, evidence.Identity{Code: "2", Host: "2"}
	made := &build.Set{}
	made.Add(build.Result{Kernel: &manifest.Kernel{Name: "k"}, Artifact: &build.Artifact{Identity: head}},
		build.Result{Kernel: &manifest.Kernel{Name: "lib"}, Artifact: &build.Artifact{Identity: ref, Of: &manifest.Kernel{Name: "lib"}}})
	at := func(id evidence.Identity) evidence.Address { return evidence.Address{Identity: id, Case: "c"} }
	beside := plan.Task{Key: evidence.Key{Tier: evidence.Latency, At: at(head), Base: at(ref)}, Reference: "lib"}
	plain := plan.Task{Key: evidence.Key{Tier: evidence.Latency, At: at(head), Base: at(head)}}
	step := plan.Step{Tier: evidence.Latency, Tasks: []plan.Task{beside, plain},
		Tests: []plan.Test{{Task: 0}, {Task: 1, Test: compare.Test{CacheState: "cold"}}}}

	b := &Bench{made: made, complete: func(_ context.Context, a *build.Artifact) error {
		if a.Of == nil {
			return nil
		}
		return &build.UnavailableError{Why: "no lib 1 here"}
	}}
	var l evidence.Ledger
	kept, err := b.without(context.Background(), step, &l)
	if err != nil || len(kept.Tasks) != 1 || kept.Tasks[0].Reference != "" || len(kept.Tests) != 1 || kept.Tests[0].Task != 0 || kept.Tests[0].CacheState != "cold" {
		t.Errorf("%+v, %v", kept, err)
	}
	found := l.Find(evidence.NeedOf(beside.Key))
	if why := strings.Join(found.Why, " "); why != "no lib 1 here" {
		t.Errorf("the ledger says %q", why)
	}

	b.complete = func(context.Context, *build.Artifact) error { return nil }
	if kept, err = b.without(context.Background(), step, &l); err != nil || len(kept.Tasks) != 2 || len(kept.Tests) != 2 {
		t.Errorf("with the library: %+v, %v", kept, err)
	}
	broken := errors.New("it does not compile")
	b.complete = func(context.Context, *build.Artifact) error { return broken }
	if _, err = b.without(context.Background(), step, &l); !errors.Is(err, broken) {
		t.Errorf("a library that cannot be built: %v", err)
	}
}
