//go:build gs

package main

// Google's driver doubles the size of the program and the time that it takes to
// start, so that it is built in on demand: go install -tags gs.
import _ "gocloud.dev/blob/gcsblob"
