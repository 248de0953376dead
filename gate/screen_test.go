package main

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// In scripts nothing may depend on how long a build takes: a log is told of
// progress only where a script says how often.
func init() {
	speakEvery = time.Hour
	if every, err := time.ParseDuration(os.Getenv("TEST_SPEAK_EVERY")); err == nil {
		speakEvery = every
	}
}

// TestLogSaysEverything does so where nothing is waited for.
func TestLogSaysEverything(t *testing.T) {
	var log bytes.Buffer
	s := &screen{w: &log, all: true}
	s.step("12 of 47: profiling")
	s.built("toy/a", 13, 47)
	if got, want := log.String(), "gate: 12 of 47: profiling\ngate: 13 of 47: built toy/a\n"; got != want {
		t.Errorf("%q", got)
	}
}

// TestLogSpeaksAtEveryTick: a tick that is taken finds the one before it done.
func TestLogSpeaksAtEveryTick(t *testing.T) {
	var log bytes.Buffer
	tick := make(chan time.Time)
	s := &screen{w: &log, doing: "reading"}
	stop := s.speak(tick)
	s.step("never said")
	s.built("toy/a\x1b", 1, 47)
	tick <- time.Time{}
	tick <- time.Time{} // the first has been said
	stop()
	const line = "gate: 1 of 47: built toy/a\\u001b\n"
	if got := log.String(); got != line+line {
		t.Errorf("%q", got)
	}
	s.step("12 of 47: profiling")
	if got := log.String(); got != line+line {
		t.Errorf("after its end: %q", got)
	}
}
