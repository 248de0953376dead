package disk

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	answersSize = 32 << 20 // bytes of the file
	answersMost = 1 << 16  // beyond this the file is started anew
)

// Answers remembers what was found out about files, as long as they are the
// same files with the same size and times. It only saves time: whatever is odd in it is
// asked again, and a file that cannot be written is not an error.
type Answers struct {
	path string

	mu      sync.Mutex
	known   map[string]answer
	changed bool
}

type answer struct {
	File   Stamp  `json:"file"`
	Answer string `json:"answer"`
}

// A Stamp changes when a file does: who writes to one can set back the time of
// its content, but not that of its inode.
type Stamp struct {
	Device  uint64 `json:"device"`
	Inode   uint64 `json:"inode"`
	Size    int64  `json:"size"`
	ModTime int64  `json:"mtime_ns"`
	Change  int64  `json:"ctime_ns"`
}

// StampOf is a file's stamp now.
func StampOf(path string) (Stamp, error) {
	var s unix.Stat_t
	if err := unix.Stat(path, &s); err != nil {
		return Stamp{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return Stamp{uint64(s.Dev), s.Ino, s.Size, s.Mtim.Nano(), s.Ctim.Nano()}, nil
}

// OpenAnswers reads the file that remembers; path "" remembers nothing.
func OpenAnswers(path string) *Answers {
	return &Answers{path: path, known: readAnswers(path)}
}

// readAnswers returns what a file remembers, nothing if anything in it is odd.
func readAnswers(path string) map[string]answer {
	data, err := ReadFile(path, answersSize)
	var known map[string]answer
	if err != nil || json.Unmarshal(data, &known) != nil || known == nil {
		return map[string]answer{}
	}
	return known
}

// Ask returns the answer to a question about a file, remembered or new. check
// says whether an answer makes sense; one that does not is neither believed
// nor kept.
func (a *Answers) Ask(question, path string, ask func() (string, error), check func(string) error) (string, error) {
	now, err := StampOf(path)
	if err != nil {
		return "", err
	}
	key := question + " " + path
	a.mu.Lock()
	e, ok := a.known[key]
	a.mu.Unlock()
	if ok && e.File == now && check(e.Answer) == nil {
		return e.Answer, nil
	}
	text, err := ask()
	if err == nil {
		err = check(text)
	}
	if err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[key] = answer{now, text}
	a.changed = true
	return text, nil
}

// Save writes what is new. Of two processes that save at once one may lose
// answers; the next run asks again.
func (a *Answers) Save() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.path == "" || !a.changed {
		return
	}
	merged := readAnswers(a.path)
	if len(merged)+len(a.known) > answersMost {
		clear(merged)
	}
	maps.Copy(merged, a.known)
	data, err := json.Marshal(merged)
	if err != nil || os.MkdirAll(filepath.Dir(a.path), 0o755) != nil || WriteFile(a.path, data) != nil {
		return
	}
	a.changed = false
}

// SHA256 is the hash of a file's content, remembered or new.
func (a *Answers) SHA256(path string) (string, error) {
	return a.Ask("sha256", path, func() (string, error) { return SHA256(path) }, func(s string) error {
		if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
			return fmt.Errorf("%q is not a SHA-256", s)
		}
		return nil
	})
}
