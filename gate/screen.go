package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/kernelgate/gate/gate/internal/build"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// A screen is standard error while a command works. On a terminal it shows
// what is being done; elsewhere it says only what a reader must know.
type screen struct {
	mu    sync.Mutex
	w     io.Writer
	bar   *progressbar.ProgressBar
	count int
}

func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if isTerminal(w) {
		s.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(w), progressbar.OptionClearOnFinish(),
			progressbar.OptionSpinnerType(14), progressbar.OptionSetDescription("reading"))
	}
	return s
}

func (s *screen) step(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.Describe(printable.Line(what))
		s.bar.Add(1)
	}
}

func (s *screen) built(r build.Result) {
	s.mu.Lock()
	s.count++
	n := s.count
	s.mu.Unlock()
	s.step(fmt.Sprintf("built %d: %s", n, r.Kernel.Name))
}

func (s *screen) announce(notes []string) {
	s.clear()
	for _, n := range notes {
		fmt.Fprintf(s.w, "gate: note: %s\n", printable.Line(n))
	}
}

func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.Clear()
	}
}

func isTerminal(w io.Writer) bool {
	s, ok := w.(stream)
	return ok && term.IsTerminal(int(s.file.Fd())) && environment("TERM") != "dumb"
}

// colourful follows https://no-color.org: any value that is not empty says no.
func colourful(w io.Writer) bool {
	return isTerminal(w) && environment("NO_COLOR") == ""
}
