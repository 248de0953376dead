package report

import "os"

func publish() error { return os.Rename("a", "b") }

func clean(r rune) bool { return r == '\u2028' }

// Width is used by an experiment only.
const Width = 80
