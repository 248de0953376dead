package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/kernelgate/gate/gate/internal/printable"
)

// speakEvery is how often a log says what is being done; at 0 it says everything.
var speakEvery = 10 * time.Second

// A screen is standard error while a command works. A terminal shows what is
// being done; a log says it now and then. Both say at once what a reader must
// know.
type screen struct {
	mu        sync.Mutex
	w         io.Writer
	bar       *progressbar.ProgressBar // of a terminal
	doing     string
	all       bool // a log is told of every step
	announced []string
	stop      func() // ends what speaks into a log
}

func newScreen(c *cli.Context) *screen {
	s := &screen{w: c.App.ErrWriter, doing: "reading", stop: func() {}}
	switch {
	case c.Bool("quiet"):
		s.w = io.Discard
	case isTerminal(s.w):
		s.bar = progressbar.NewOptions(-1, progressbar.OptionSetWriter(s.w), progressbar.OptionClearOnFinish(),
			progressbar.OptionSpinnerType(14), progressbar.OptionSetDescription(s.doing))
	case speakEvery == 0:
		s.all = true
	default:
		tick := time.NewTicker(speakEvery)
		s.stop = sync.OnceFunc(s.speak(tick.C))
	}
	return s
}

// speak says at every tick what is being done, until stop has been called.
func (s *screen) speak(tick <-chan time.Time) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-tick:
				s.mu.Lock()
				fmt.Fprintf(s.w, "gate: %s\n", s.doing)
				s.mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func (s *screen) step(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doing = printable.Line(what)
	if s.all {
		fmt.Fprintf(s.w, "gate: %s\n", s.doing)
	}
	if s.bar != nil {
		s.bar.Describe(s.doing)
		s.bar.Add(1)
	}
}

func (s *screen) built(kernel string, n, of int) {
	s.step(fmt.Sprintf("%d of %d: built %s", n, of, kernel))
}

// timeline says at the end what took how long.
func (s *screen) timeline(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range lines {
		fmt.Fprintf(s.w, "gate: %s\n", printable.Line(line))
	}
}

func (s *screen) announce(notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.Clear()
	}
	s.announced = notes
	for _, n := range notes {
		fmt.Fprintf(s.w, "gate: note: %s\n", printable.Line(n))
	}
}

// close ends the progress before a report is written.
func (s *screen) close() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar != nil {
		s.bar.Clear()
	}
}

// readOn are the notes that whoever reads an output has read on this screen.
func (s *screen) readOn(w io.Writer) []string {
	out, ok := w.(stream)
	own, both := s.w.(stream)
	if !ok || !both {
		return nil
	}
	a, err := out.file.Stat()
	b, otherErr := own.file.Stat()
	if err != nil || otherErr != nil || !os.SameFile(a, b) {
		return nil
	}
	return s.announced
}

func isTerminal(w io.Writer) bool {
	s, ok := w.(stream)
	return ok && term.IsTerminal(int(s.file.Fd())) && environment("TERM") != "dumb"
}

// colourful follows https://no-color.org: any value of NO_COLOR that is not
// empty says no, unless a flag says otherwise.
func colourful(w io.Writer, flag string) bool {
	if flag == "always" || flag == "never" {
		return flag == "always"
	}
	return isTerminal(w) && environment("NO_COLOR") == ""
}
