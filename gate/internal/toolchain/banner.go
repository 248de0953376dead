package toolchain

import (
	"errors"
	"regexp"
)

// A banner is what a CUDA tool says of itself under --version.
type banner struct {
	Version string // "13.0.88"
	Build   string // "cuda_13.0.r13.0/compiler.36424714_0"; "" for tools that print none
}

var (
	releaseLine = regexp.MustCompile(`(?m)^Cuda compilation tools, release [0-9.]+, V([0-9]+(?:\.[0-9]+){1,3})\r?$`)
	buildLine   = regexp.MustCompile(`(?m)^Build (\S+)\r?$`)
	versionLine = regexp.MustCompile(`(?m)^Version ([0-9]+(?:\.[0-9]+){1,3})\b`)
)

// parseBanner reads the --version text of nvcc, ptxas or cuobjdump.
func parseBanner(text string) (banner, error) {
	v, b := releaseLine.FindStringSubmatch(text), buildLine.FindStringSubmatch(text)
	if v == nil {
		return banner{}, errors.New("its --version has no line \"Cuda compilation tools, release …\"")
	}
	if b == nil {
		return banner{}, errors.New("its --version has no line \"Build …\"")
	}
	return banner{Version: v[1], Build: b[1]}, nil
}

// parseToolBanner reads the --version text of any other NVIDIA tool: ncu and
// compute-sanitizer print a line "Version 2025.3.1.0 (build …)".
func parseToolBanner(text string) (banner, error) {
	b, err := parseBanner(text)
	if v := versionLine.FindStringSubmatch(text); err != nil && v != nil {
		return banner{Version: v[1]}, nil
	}
	if err != nil {
		err = errors.New("its --version has no line \"Version …\"")
	}
	return b, err
}
