package collect

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/disk"
	"github.com/kernelgate/gate/gate/internal/toolchain"
)

// A watcher is a program of NVIDIA's that runs another one and writes into a file
// what it saw.
type watcher struct {
	path  string
	limit time.Duration
	args  []string // the last of them takes the file
}

// watch runs one call of each unit under a watcher. The log is empty where it wrote
// none.
func (c *Bench) watch(ctx context.Context, w watcher, units []unit) (log []byte, s *stream, r command.Result, err error) {
	asked, reads, err := c.ask(ctx, "profile", units)
	if err != nil {
		return nil, nil, r, err
	}
	dir, err := disk.TempDir(c.cache, filepath.Base(w.path))
	if err != nil {
		return nil, nil, r, err
	}
	defer disk.RemoveTemp(dir)
	file := filepath.Join(dir, "log")
	args := append(append(slices.Clone(w.args), file, c.program), asked...)
	reads = append(reads, toolchain.Folders(w.path)...)
	if r, err = c.runIn(ctx, dir, command.Command{Path: w.path, Args: args, Limit: w.limit}, reads...); err != nil {
		return nil, nil, r, err
	}
	log, err = disk.ReadFile(file, 32<<20)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return log, parseStream(onlyJSON(r.Stdout)), r, err
}
