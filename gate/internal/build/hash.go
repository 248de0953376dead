package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A hasher knows the content of files. A file of the tree is read once a run;
// a header of the system is read again only when its size or time changed,
// because hundreds of them stand behind every kernel.
type hasher struct {
	path string

	mu    sync.Mutex
	memo  map[string]string
	stats map[string]statEntry
	dirty bool
}

type statEntry struct {
	Size  int64  `json:"size"`
	Mtime int64  `json:"mtime_ns"`
	Sum   string `json:"sha256"`
}

func openHasher(path string) *hasher {
	h := &hasher{path: path, memo: map[string]string{}, stats: map[string]statEntry{}}
	if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, &h.stats) != nil {
		h.stats = map[string]statEntry{}
	}
	return h
}

func (h *hasher) file(path string, system bool) (string, error) {
	h.mu.Lock()
	sum, ok := h.memo[path]
	known, seen := h.stats[path]
	h.mu.Unlock()
	if ok {
		return sum, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if system && seen && known.Size == info.Size() && known.Mtime == info.ModTime().UnixNano() {
		h.keep(path, known.Sum)
		return known.Sum, nil
	}
	if sum, err = hashFile(path); err != nil {
		return "", err
	}
	h.keep(path, sum)
	if system {
		h.mu.Lock()
		h.stats[path] = statEntry{info.Size(), info.ModTime().UnixNano(), sum}
		h.dirty = true
		h.mu.Unlock()
	}
	return sum, nil
}

func (h *hasher) keep(path, sum string) {
	h.mu.Lock()
	h.memo[path] = sum
	h.mu.Unlock()
}

// save is best effort: what is not remembered is hashed again.
func (h *hasher) save() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.dirty {
		return
	}
	if data, err := json.Marshal(h.stats); err == nil && writeAtomic(h.path, data) == nil {
		h.dirty = false
	}
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeAtomic replaces a file as a whole or not at all.
func writeAtomic(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// sweep removes what killed runs left behind. A day is longer than any build.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
}
