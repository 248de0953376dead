package policy

import (
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/kernelgate/gate/gate/internal/yamlfile"
)

//go:embed presets/*.yaml
var presets embed.FS

// presetNames are the names that extends: knows.
func presetNames() []string {
	files, err := presets.ReadDir("presets")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
	}
	return names
}

// extend adds the rules of presets after the policy's own. A rule of the
// policy's takes the place of a preset's with its id.
func (c checker) extend(f *file) error {
	for i, name := range f.Extends {
		data, err := presets.ReadFile(path.Join("presets", name+".yaml"))
		if err != nil || slices.Index(f.Extends, name) != i {
			known := "known: " + strings.Join(presetNames(), ", ")
			return c.bad("extends", yamlfile.DidYouMean(name, presetNames(), known), "extends: %q is not a preset, or is named twice", name)
		}
		var p struct {
			Rules []rule `yaml:"rules"`
		}
		if _, err := yamlfile.Decode(data, "preset "+name, &p); err != nil {
			return fmt.Errorf("gate's own preset: %w", err)
		}
		for _, r := range p.Rules {
			if !slices.ContainsFunc(f.Rules, func(x rule) bool { return x.ID == r.ID }) {
				r.preset = name
				f.Rules = append(f.Rules, r)
			}
		}
	}
	return nil
}
