package git

import (
	"context"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// attributesFile tells git, for its folder and all below, how files are converted.
const attributesFile = ".gitattributes"

// converts finds an attribute by which git writes a file otherwise than it holds
// it. Line ends count in a raw string. A pointer of git-lfs is looked at itself.
var converts = regexp.MustCompile(`(^|\s)[-!]?(ident|working-tree-encoding|filter|eol=crlf)(\s|=|$)`)

// Converted reports whether the rules by which git converts a file when it
// checks it out changed since the commit. What the file was there is not known
// then, since git holds it before the conversion.
func (c *Comparison) Converted(file string) bool {
	return slices.ContainsFunc(c.converted, func(dir string) bool { return dir == "." || strings.HasPrefix(file, dir+"/") })
}

// conversions are the folders of which such rules changed.
func (r *Repo) conversions(ctx context.Context, p *place, changed []string, files []file) ([]string, error) {
	texts := map[string]string{} // the commit's
	for _, name := range changed {
		if path.Base(name) == attributesFile {
			texts[name] = ""
		}
	}
	held := slices.DeleteFunc(slices.Clone(files), func(f file) bool { _, ok := texts[f.path]; return !ok || f.mode == symlink })
	err := r.blobs(ctx, p, held, func(f file, body io.Reader) error {
		text, err := io.ReadAll(body)
		texts[f.path] = string(text)
		return err
	})
	var dirs []string
	for name, before := range texts {
		now, _ := os.ReadFile(filepath.Join(p.root, name)) // one that is gone says nothing
		if rulesOf(before) != rulesOf(string(now)) {
			dirs = append(dirs, path.Dir(name))
		}
	}
	return dirs, err
}

// rulesOf are the lines of a file of attributes that convert something.
func rulesOf(text string) string {
	var rules []string
	for line := range strings.Lines(text) {
		line = strings.Join(strings.Fields(line), " ")
		if !strings.HasPrefix(line, "#") && converts.MatchString(strings.ReplaceAll(line, "filter=lfs", "")) {
			rules = append(rules, line)
		}
	}
	return strings.Join(rules, "\n")
}
