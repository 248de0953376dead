package toolchain

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
)

const (
	versionFile      = "versions.json"
	versionFileLimit = 1 << 20 // bytes
	versionEntries   = 256     // beyond this the file is started anew
)

// A versionCache remembers what was asked of a file, so that a warm Find
// starts no process. It only saves time: whatever is odd in it is asked again,
// and a file that cannot be written is no error.
type versionCache struct {
	path    string
	entries map[string]versionEntry
	changed bool
}

// A versionEntry is the answer of one file, valid while size and time of
// change are the same.
type versionEntry struct {
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_ns"`
	Answer  string `json:"answer"`
}

// openVersionCache reads CacheDir/versions.json; dir "" means no cache.
func openVersionCache(dir string) *versionCache {
	c := &versionCache{entries: map[string]versionEntry{}}
	if dir == "" {
		return c
	}
	c.path = filepath.Join(dir, versionFile)
	c.entries = readVersions(c.path)
	return c
}

// readVersions returns the entries of a version file, none if anything in it
// is odd.
func readVersions(path string) map[string]versionEntry {
	none := map[string]versionEntry{}
	f, err := os.Open(path)
	if err != nil {
		return none
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, versionFileLimit+1))
	if err != nil || len(data) > versionFileLimit {
		return none
	}
	var read map[string]versionEntry
	if json.Unmarshal(data, &read) != nil || read == nil {
		return none
	}
	return read
}

// ask returns the answer to a question about the file at path, from the cache
// when the file is unchanged. check says whether an answer makes sense; one
// that does not is neither believed nor kept.
func (c *versionCache) ask(ctx context.Context, question, path string,
	answer func(context.Context, string) (string, error), check func(string) error) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	key := question + " " + path
	if e, ok := c.entries[key]; ok && e.Size == info.Size() && e.ModTime == info.ModTime().UnixNano() && check(e.Answer) == nil {
		return e.Answer, nil
	}
	text, err := answer(ctx, path)
	if err != nil {
		return "", err
	}
	if err := check(text); err != nil {
		return "", err
	}
	c.entries[key] = versionEntry{Size: info.Size(), ModTime: info.ModTime().UnixNano(), Answer: text}
	c.changed = true
	return text, nil
}

// save writes the cache if anything is new. Concurrent writers may lose each
// other's entries; the next run asks again.
func (c *versionCache) save() {
	if c.path == "" || !c.changed {
		return
	}
	merged := readVersions(c.path)
	if len(merged)+len(c.entries) > versionEntries {
		clear(merged)
	}
	maps.Copy(merged, c.entries)
	data, err := json.MarshalIndent(merged, "", " ")
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o755) != nil {
		return
	}
	writeFile(c.path, append(data, '\n'))
}

// writeFile replaces a file in one step: readers see the old or the new bytes.
func writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
