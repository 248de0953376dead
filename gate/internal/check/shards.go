package check

import (
	"context"
	"fmt"
	"strings"
)

// A Matrix is the runs of a change as a workflow's matrix: each measures some
// kernels, and all together what is missing.
type Matrix struct {
	Include []Part `json:"include"`
}

// A Part is one run of a matrix. Args are the flags and arguments of collect, one
// a line, as the action takes them.
type Part struct {
	Name string `json:"name"`
	Args string `json:"args"`
}

// Shards spreads what is to be measured over at most so many runs, so that each
// takes about the same time of a GPU. Kernels of which nothing is missing are in
// none.
func Shards(ctx context.Context, o Options, most int) (Matrix, error) {
	r, err := open(ctx, o)
	if err != nil {
		return Matrix{}, err
	}
	shards := r.deal(most)
	m := Matrix{Include: []Part{}}
	for i, s := range shards {
		args := append([]string{"--shard", fmt.Sprintf("%d/%d", i+1, len(shards))}, s.kernels...)
		m.Include = append(m.Include, Part{Name: fmt.Sprint(i + 1), Args: strings.Join(args, "\n")})
	}
	return m, nil
}
