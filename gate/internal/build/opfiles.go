package build

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/kernelgate/gate/gate/internal/exit"
	"github.com/kernelgate/gate/gate/internal/manifest"
)

// An includeError is an op that includes a header of somebody else's.
type includeError struct {
	File   string // from the root of the repository
	Line   int
	Header string
}

func (e *includeError) Error() string {
	return fmt.Sprintf("%s:%d: %s lies outside the op's folder, so that evidence would outlive a change to it", e.File, e.Line, e.Header)
}

// ExitCode is that of a file of the user's that is invalid.
func (e *includeError) ExitCode() int { return exit.Usage }

// Hint says how the header can be judged.
func (e *includeError) Hint() string {
	return "a header that several ops share has to be copied into the folder of each"
}

// OpFiles are the op's sources and the headers in its folder that they include;
// a header that only kernels include does not judge anything. One outside the
// folder is an error: evidence would outlive a change to it.
func OpFiles(op *manifest.Op) ([]string, error) {
	files := append([]string(nil), op.Sources...)
	for i := 0; i < len(files); i++ {
		data, err := os.ReadFile(filepath.Join(op.Dir, filepath.FromSlash(files[i])))
		if err != nil {
			return nil, fmt.Errorf("op %s: %w", op.Name, err)
		}
		if err := opPointer(op, files[i], data); err != nil {
			return nil, err
		}
		for n, line := range strings.Split(string(data), "\n") {
			if strings.Contains(line, "__has_include") {
				return nil, &InputError{fmt.Sprintf("%s:%d", path.Join(path.Dir(op.File), files[i]), n+1),
					"__has_include is refused in an op: a file that is only looked for is in no identity"}
			}
			found, outside := included(op.Dir, files[i], line)
			if outside != "" {
				return nil, &includeError{File: path.Join(path.Dir(op.File), files[i]), Line: n + 1, Header: outside}
			}
			if found != "" && !slices.Contains(files, found) {
				files = append(files, found)
			}
		}
	}
	sort.Strings(files)
	return files, nil
}

// included is the file of the folder that a line of one of its files includes,
// or the one outside of it; "" where the line includes none of the project's.
func included(folder, from, line string) (found, outside string) {
	name, quoted, ok := include(line)
	if !ok {
		return "", ""
	}
	places := []string{name} // the folder is searched for both forms
	if quoted {
		places = []string{path.Join(path.Dir(from), name), name}
	}
	for _, p := range places {
		info, err := os.Stat(filepath.Join(folder, filepath.FromSlash(p)))
		if path.IsAbs(name) {
			info, err = os.Stat(name)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if p = path.Clean(p); path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(p)) {
			return "", name
		}
		return p, ""
	}
	return "", ""
}

// include reads an #include directive. quoted tells its two forms apart.
func include(line string) (name string, quoted, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
	if !ok {
		return "", false, false
	}
	rest, ok = strings.CutPrefix(strings.TrimSpace(rest), "include")
	rest = strings.TrimSpace(rest)
	if !ok || rest == "" {
		return "", false, false
	}
	end := map[byte]string{'"': "\"", '<': ">"}[rest[0]]
	if end == "" {
		return "", false, false
	}
	name, _, ok = strings.Cut(rest[1:], end)
	return name, end == "\"", ok && name != ""
}
