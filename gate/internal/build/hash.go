package build

import (
	"sync"

	"github.com/kernelgate/gate/gate/internal/disk"
)

// A hasher knows the content of files. A file of the tree is read once a run;
// a header of the system is read again only when its size or time changed,
// because hundreds of them belong to every kernel.
type hasher struct {
	system *disk.Answers

	mu   sync.Mutex
	memo map[string]string
}

func openHasher(path string) *hasher {
	return &hasher{system: disk.OpenAnswers(path), memo: map[string]string{}}
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
