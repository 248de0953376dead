package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/manifest"
	"github.com/kernelgate/gate/gate/internal/policy"
	"github.com/kernelgate/gate/gate/internal/store"
)

// TestRelevantKnowsTheStoresOwnNames holds recorded to what a store writes.
func TestRelevantKnowsTheStoresOwnNames(t *testing.T) {
	dir := t.TempDir()
	machine := evidence.Machine{GPU: "NVIDIA H200"}
	r := &evidence.Record{Tier: evidence.Profile, Provenance: evidence.Provenance{Recorded: "2026-11-20T10:00:00Z", Machine: machine},
		Address: evidence.Address{Identity: evidence.Identity{Code: "c", Host: "h"}, Op: "op", Case: "small", Harness: "01234567", Machine: machine.Key()}}
	if err := store.Open(dir).Put(r, map[string][]byte{"ncu.csv": []byte("x")}); err != nil {
		t.Fatal(err)
	}
	p := &Project{Policy: &policy.Policy{Store: "kernels/evidence"}}
	files := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		files++
		rel, err := filepath.Rel(dir, path)
		if name := "kernels/evidence/" + filepath.ToSlash(rel); err == nil && !p.recorded(name) {
			t.Errorf("%s is not taken for evidence", name)
		}
		return err
	})
	if err != nil || files != 2 {
		t.Errorf("%d files, %v", files, err)
	}
}

func TestFilter(t *testing.T) {
	all := []*manifest.Kernel{{Name: "op/a"}, {Name: "op/b"}, {Name: "ops/a"}}
	for _, c := range []struct{ patterns, want, err string }{
		{"", "op/a op/b ops/a", ""}, {"op/a", "op/a", ""}, {"op/*", "op/a op/b", ""}, {"**/a", "op/a ops/a", ""}, {"op/b op/*", "op/a op/b", ""},
		{"op/c", "", `no kernel is called "op/c"`}, {"op/a op/c", "", `no kernel is called "op/c"`}, {"[", "", `no kernel is called "["`}, {"op", "", `no kernel is called "op"`},
	} {
		kept, err := filter(all, strings.Fields(c.patterns))
		if got := strings.Join(names(kept), " "); got != c.want && c.err == "" {
			t.Errorf("%q: %q, want %q", c.patterns, got, c.want)
		}
		status, hint := exit.Of(err)
		if (err == nil) != (c.err == "") || err != nil && (status != exit.Usage || err.Error() != c.err || hint != "there are op/a, op/b, ops/a" || kept != nil) {
			t.Errorf("%q: %v", c.patterns, err)
		}
	}
}

func TestPolicyPath(t *testing.T) {
	for _, c := range []struct{ policy, dir, path, name string }{
		{"", "/repo/sub", "/repo/policies.yaml", "policies.yaml"},
		{"p.yaml", "/repo/sub", "/repo/sub/p.yaml", "sub/p.yaml"},
		{"../p.yaml", "/repo/sub", "/repo/p.yaml", "p.yaml"},
		{"/repo/x/p.yaml", "/elsewhere", "/repo/x/p.yaml", "x/p.yaml"},
		{"/other/p.yaml", "/repo", "/other/p.yaml", "/other/p.yaml"},
	} {
		path, name := policyPath(Options{Policy: c.policy, Dir: c.dir}, "/repo")
		if path != c.path || name != c.name {
			t.Errorf("%q in %s: %s, %s", c.policy, c.dir, path, name)
		}
	}
}
