package git

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A place is where a repository of the user's lies, the checked-out one or one
// of its submodules.
type place struct {
	root string   // the working tree; "" when there is none
	gits []string // git's folders that may hold its objects
}

// dir is a folder that is there, to run git in.
func (p *place) dir(otherwise string) string {
	if p.root != "" {
		return p.root
	}
	return otherwise
}

// alternates is the list of the place's object folders in git's notation.
func (p *place) alternates() string {
	var list []string
	for _, g := range p.gits {
		if common, err := os.ReadFile(filepath.Join(g, "commondir")); err == nil { // of a linked worktree
			g = under(g, strings.TrimSuffix(string(common), "\n"))
		}
		if objects := filepath.Join(g, "objects"); isDir(objects) {
			list = append(list, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(objects)+`"`)
		}
	}
	return strings.Join(list, string(filepath.ListSeparator))
}

// remote is the address that the place was cloned from. Only the user's own
// configuration is asked: .gitmodules is part of the change.
func (p *place) remote(ctx context.Context) (string, error) {
	if len(p.gits) == 0 {
		return "", errors.New("it is not checked out here")
	}
	best, rank := "", 0
	for _, g := range p.gits {
		var out bytes.Buffer
		file := filepath.Join(g, "config")
		err := call{dir: g, out: &out, args: []string{"config", "--file", file, "--no-includes", "-z", "--get-regexp", `^remote\..*\.(url|promisor)$`}}.run(ctx)
		if err != nil && !answered(err) {
			return "", err
		}
		urls, values := map[string]string{}, strings.Split(out.String(), "\x00")
		for _, v := range values {
			if key, url, _ := strings.Cut(v, "\n"); strings.HasSuffix(key, ".url") && urls[strings.TrimSuffix(key, ".url")] == "" {
				urls[strings.TrimSuffix(key, ".url")] = url
			}
		}
		for name, url := range urls {
			n := 1
			switch {
			case slices.Contains(values, name+".promisor\ntrue"):
				n = 3
			case name == "remote.origin":
				n = 2
			}
			if n > rank || n == rank && url < best {
				best, rank = url, n
			}
		}
	}
	if best == "" {
		return "", errors.New("the clone names no remote to fetch it from")
	}
	return best, nil
}

// submodules are the places of a commit's submodules by their paths.
func (r *Repo) submodules(ctx context.Context, p *place, commit string, files []file) (map[string]*place, error) {
	subs, names := map[string]*place{}, map[string]string{}
	for _, f := range files {
		if f.mode == gitlink {
			subs[f.path] = &place{}
		}
	}
	if len(subs) == 0 {
		return subs, nil
	}
	var out bytes.Buffer
	err := r.read(ctx, p, len(commit), nil, &out, "config", "--blob", commit+":.gitmodules", "--no-includes", "-z", "--get-regexp", `^submodule\..*\.path$`)
	if err != nil && !answered(err) {
		return nil, err
	}
	for v := range strings.SplitSeq(out.String(), "\x00") {
		key, path, _ := strings.Cut(v, "\n")
		names[path] = strings.TrimSuffix(strings.TrimPrefix(key, "submodule."), ".path")
	}
	for path, sub := range subs {
		if p.root != "" {
			if dir := filepath.Join(p.root, path); isDir(dir) {
				sub.root = dir
				sub.gits = append(sub.gits, gitOf(dir)...)
			}
		}
		for _, g := range p.gits {
			if dir := filepath.Join(g, "modules", names[path]); filepath.IsLocal(names[path]) && isDir(dir) {
				sub.gits = append(sub.gits, dir)
			}
		}
	}
	return subs, nil
}

// gitOf is git's folder of a working tree, if it has one.
func gitOf(root string) []string {
	dir := filepath.Join(root, ".git")
	if data, err := os.ReadFile(dir); err == nil {
		to, ok := strings.CutPrefix(string(data), "gitdir: ")
		if !ok {
			return nil
		}
		dir = under(root, strings.TrimRight(to, "\r\n"))
	}
	if !isDir(dir) {
		return nil
	}
	return []string{dir}
}

// under reads a path as git does: from a folder unless it is absolute.
func under(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
