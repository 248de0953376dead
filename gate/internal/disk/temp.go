package disk

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// foreignAge is when a temporary folder of another machine's is taken for
// left behind. No run lasts so long.
const foreignAge = 24 * time.Hour

func tempFolder(cache string) string { return filepath.Join(cache, "tmp") }

// TempDir makes a folder for what this process is making. All lie in one folder
// of the cache and carry their owner, so that SweepTemp finds what a kill left.
func TempDir(cache, what string) (string, error) {
	if err := os.MkdirAll(tempFolder(cache), 0o755); err != nil {
		return "", err
	}
	return os.MkdirTemp(tempFolder(cache), Owner()+"-"+what+"-")
}

// RemoveTemp removes a folder, one as well that a program which ran there made
// inaccessible.
func RemoveTemp(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	return os.RemoveAll(dir)
}

// SweepTemp removes what processes that have ended left behind.
func SweepTemp(cache string) { sweep(tempFolder(cache), "") }

// owned is a name that begins with its owner. What has another name, no gate made.
var owned = regexp.MustCompile(`^([0-9a-f]{12}-[0-9]+-[0-9]+)-`)

// sweep removes the files and folders with this prefix whose owner has ended.
func sweep(dir, prefix string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), prefix)
		owner := owned.FindStringSubmatch(rest)
		if !ok || owner == nil {
			continue
		}
		gone, known := Gone(owner[1])
		if info, err := e.Info(); !known && err == nil {
			gone = time.Since(info.ModTime()) > foreignAge
		}
		if gone {
			RemoveTemp(filepath.Join(dir, e.Name()))
		}
	}
}
