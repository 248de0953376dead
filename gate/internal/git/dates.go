package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Committed are the times of the newest commits, up to one, that touched the files
// below a folder, by path from the root. What a merge took from one side as it is
// counts with the commit of that side.
func (r *Repo) Committed(ctx context.Context, commit, folder string) (map[string]time.Time, error) {
	out, err := r.run(ctx, "-c", "log.showSignature=false", "log", "-z", "-c", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-relative",
		"--no-notes", "--no-color", "--no-decorate", "--format=format:%x01%ct", commit, "--", folder)
	if err != nil {
		return nil, err
	}
	times := map[string]time.Time{}
	var at time.Time
	for _, commit := range strings.Split(out, "\x01")[1:] {
		head, files, _ := strings.Cut(commit, "\n")
		seconds, err := strconv.ParseInt(strings.Trim(head, "\x00"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("git dates a commit %q", head)
		}
		at = time.Unix(seconds, 0)
		for _, f := range strings.Split(strings.Trim(files, "\x00"), "\x00") {
			if _, newer := times[f]; !newer && f != "" {
				times[f] = at
			}
		}
	}
	return times, nil
}
