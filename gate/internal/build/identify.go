package build

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/identity"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// identify makes the identities of what a compilation left, and returns the
// cubins that run.
func (b *Builder) identify(p places, k *manifest.Kernel, arch, tmp string, in *inputs) (*meta, []string, error) {
	m := &meta{Arch: arch, Compiler: b.Toolchain.Version, Inputs: in.sums()}
	modules := identity.Modules{}
	for _, s := range k.Sources {
		id, err := os.ReadFile(filepath.Join(tmp, stem(s)+".module_id"))
		if err != nil {
			return nil, nil, fmt.Errorf("reading the compiler's name of a module: %w", err)
		}
		if err := modules.AddModule(string(id), s); err != nil {
			return nil, nil, err
		}
	}
	var cubins []string
	code, host, relocatable := []string{arch}, in.parts(k, p), false
	for _, s := range k.Sources {
		c, file, err := readCubin(tmp, stem(s), arch, modules)
		if err != nil {
			return nil, nil, err
		}
		id, err := b.hostID(p, tmp, stem(s), modules)
		if err != nil {
			return nil, nil, err
		}
		m.Units = append(m.Units, Unit{Source: s, Functions: c.Functions})
		cubins = append(cubins, file)
		code, host, relocatable = append(code, s, c.ID()), append(host, s, id), relocatable || c.Relocatable
	}
	if relocatable { // then no unit's own cubin runs
		c, file, err := readCubin(tmp, "lib_dlink", arch, modules)
		if err != nil {
			return nil, nil, err
		}
		m.Linked, cubins = append([]identity.Function{}, c.Functions...), []string{file}
		code = []string{arch, "linked", c.ID()}
	}
	m.CodeID, m.HostID = identity.Combine("code", code...), identity.Combine("host", host...)
	return m, cubins, nil
}

func stem(source string) string {
	return strings.TrimSuffix(filepath.Base(source), filepath.Ext(source))
}

func readCubin(tmp, stem, arch string, modules identity.Modules) (*identity.Cubin, string, error) {
	file, err := findCubin(tmp, stem, arch)
	if err != nil {
		return nil, "", err
	}
	data, err := readWhole(file)
	if err != nil {
		return nil, "", err
	}
	c, err := identity.ReadCubin(data, filepath.Base(file), modules)
	return c, filepath.Base(file), err
}

func findCubin(dir, stem, arch string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".cubin")
		rest, mine := strings.CutPrefix(name, stem)
		if ok && mine && (rest == "" || rest == "."+arch || strings.HasPrefix(rest, ".compute_") && strings.HasSuffix(rest, "."+arch)) {
			found = append(found, filepath.Join(dir, e.Name()))
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("nvcc left %d cubins of %s for %s", len(found), stem, arch)
	}
	return found[0], nil
}

func (b *Builder) hostID(p places, tmp, stem string, modules identity.Modules) (string, error) {
	var u identity.Unit
	for _, f := range []struct {
		name string
		to   *[]byte
	}{{".cudafe1.cpp", &u.Host}, {".cudafe1.stub.c", &u.Stub}} {
		data, err := readWhole(filepath.Join(tmp, stem+f.name))
		if err != nil {
			return "", fmt.Errorf("reading the compiler's host-side intermediate: %w", err)
		}
		*f.to = data
	}
	return u.HostID(modules, b.system(p))
}

// parts are what the host id holds beside the code of each unit: everything
// that kernel.yaml says to the compiler, and every file that it read.
func (in *inputs) parts(k *manifest.Kernel, p places) []string {
	list := []string{recipe}
	for _, words := range [][]string{harmlessOut(k.Flags), k.Include, k.Sources, k.Objects, k.Libraries} {
		list = append(list, fmt.Sprintf("%q", words))
	}
	byName := map[string]string{}
	for name, f := range in.files {
		// Names are those that the kernel's folder sees, so that it can move.
		if rel, err := filepath.Rel(k.Dir, p.path(name)); err == nil && strings.HasPrefix(name, "R:") {
			name = filepath.ToSlash(rel)
		}
		byName[name] = f.counts
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, name, byName[name])
	}
	return list
}

// harmlessOut leaves out the flags that gate gives nvcc in any case.
func harmlessOut(flags []string) []string {
	return slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "-lineinfo" || f == "--generate-line-info" })
}
