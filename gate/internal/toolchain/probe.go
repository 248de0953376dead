package toolchain

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/printable"
)

const (
	probeTimeout = 20 * time.Second // a cold start over a network file system takes seconds
	probeOutput  = 16 << 10         // bytes
)

// ask runs a program that answers at once and returns what it printed.
func ask(ctx context.Context, c command.Command) (string, error) {
	c.Limit, c.Most, c.Merge = probeTimeout, probeOutput, true
	r, err := c.Run(ctx)
	if err == nil {
		err = r.Err()
	}
	switch said := printable.First(string(r.Stdout)); {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil && said != "":
		return "", fmt.Errorf("%s failed: %w: %s", strings.Join(c.Args, " "), err, said)
	case err != nil:
		return "", fmt.Errorf("%s failed: %w", strings.Join(c.Args, " "), err)
	}
	return string(r.Stdout), nil
}

func askVersion(ctx context.Context, path string) (string, error) {
	return ask(ctx, command.Command{Path: path, Args: []string{"--version"}})
}
