// Package scaffold writes the files with which a repository begins to use gate.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/exit"
)

//go:embed workflows/*.yml
var workflows embed.FS

// action is how the templates name gate's action.
const action = "kernelgate/gate@REF"

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// templates are the templates by name, with the action at a commit.
func templates(ref string) (map[string][]byte, error) {
	if !commit.MatchString(ref) {
		return nil, exit.Usagef("gate init --ref COMMIT, with all 40 digits", "%q is not the id of a commit: a tag or a branch can come to mean something else", ref)
	}
	return rendered("kernelgate/gate@" + ref)
}

// rendered are the templates with another action in the place of gate's.
func rendered(as string) (map[string][]byte, error) {
	out := map[string][]byte{}
	entries, err := workflows.ReadDir("workflows")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := workflows.ReadFile("workflows/" + e.Name())
		if err != nil {
			return nil, err
		}
		out[e.Name()] = []byte(strings.ReplaceAll(string(data), action, as))
	}
	return out, nil
}

// Write puts the workflows into a repository. A file that is there is left as it
// is.
func Write(root, ref string) (written, kept []string, err error) {
	files, err := templates(ref)
	if err != nil {
		return nil, nil, err
	}
	dir := filepath.Join(root, ".github", "workflows")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, nil, fmt.Errorf("writing workflows: %w", err)
	}
	for _, name := range []string{"gate-collect.yml", "gate-judge.yml", "gate-baseline.yml"} {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			kept = append(kept, path)
			continue
		}
		if err := disk.WriteFile(path, files[name]); err != nil {
			return written, kept, err
		}
		written = append(written, path)
	}
	return written, kept, nil
}
