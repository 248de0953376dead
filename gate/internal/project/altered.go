package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// Altered builds a kernel of the head with more flags than its kernel.yaml may
// hold, and with code before its own, and returns what the compiler says of it.
// It is for planting violations: nothing of it is judged as the kernel's.
func (p *Project) Altered(ctx context.Context, name, arch string, flags []string, more string) (*evidence.Record, error) {
	at := slices.IndexFunc(p.head, func(k *manifest.Kernel) bool { return k.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("unknown kernel %q", name)
	}
	k := *p.head[at]
	k.Arch, k.Entries = []string{arch}, nil
	k.Flags = slices.Concat(k.Flags, flags)
	if more != "" {
		dir, err := disk.TempDir(p.options.Cache, "planted")
		if err != nil {
			return nil, err
		}
		defer disk.RemoveTemp(dir)
		if err := os.WriteFile(filepath.Join(dir, "planted.cuh"), []byte(more), 0o600); err != nil {
			return nil, err
		}
		rel, err := filepath.Rel(k.Dir, dir)
		if err != nil {
			return nil, err
		}
		k.Include = append(slices.Clone(k.Include), filepath.ToSlash(rel))
		k.Flags = append(k.Flags, "--pre-include", "planted.cuh")
	}
	p.builder.OnDone = nil
	r := p.builder.Build(ctx, p.Root, []*manifest.Kernel{&k})[0]
	if r.Err != nil {
		return nil, r.Err
	}
	return static(r.Artifact)
}
