package build

import (
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// A hasher knows the content of files. A file of the tree is read once a run;
// a header of the system is read again only when its size or time changed,
// because hundreds of them belong to every kernel.
type hasher struct {
	system *disk.Answers

	mu    sync.Mutex
	memo  map[string]string
	there map[string]bool       // by path
	names map[string][]string   // by path of a folder or of a file
	sets  map[string]*systemSet // by key, nil for one that changed
}

func openHasher(path string) *hasher {
	return &hasher{system: disk.OpenAnswers(path), memo: map[string]string{}, there: map[string]bool{},
		names: map[string][]string{}, sets: map[string]*systemSet{}}
}

func (h *hasher) file(path string, system bool) (string, error) {
	return h.once(path, func() (string, error) {
		if system {
			return h.system.SHA256(path)
		}
		return disk.SHA256(path)
	})
}

// once asks for a hash unless this run knows it.
func (h *hasher) once(key string, ask func() (string, error)) (string, error) {
	h.mu.Lock()
	sum, ok := h.memo[key]
	h.mu.Unlock()
	if ok {
		return sum, nil
	}
	sum, err := ask()
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	h.memo[key] = sum
	h.mu.Unlock()
	return sum, nil
}

// exists reports whether there is a file of this name.
func (h *hasher) exists(path string) bool {
	h.mu.Lock()
	there, known := h.there[path]
	h.mu.Unlock()
	if known {
		return there
	}
	var s unix.Stat_t
	there = unix.Stat(path, &s) == nil
	h.mu.Lock()
	h.there[path] = there
	h.mu.Unlock()
	return there
}

// list are the names in a folder; one that is not there has none.
func (h *hasher) list(dir string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	names, known := h.names[dir]
	if !known {
		if f, err := os.Open(dir); err == nil {
			names, _ = f.Readdirnames(-1)
			f.Close()
		}
		slices.Sort(names)
		h.names[dir] = names
	}
	return names
}

// same returns the set of a key, which is checked once.
func (h *hasher) same(key string, check func() *systemSet) *systemSet {
	h.mu.Lock()
	set, known := h.sets[key]
	h.mu.Unlock()
	if !known {
		set = check()
		h.mu.Lock()
		h.sets[key] = set
		h.mu.Unlock()
	}
	return set
}
