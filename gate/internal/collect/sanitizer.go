package collect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/kernelgate/gate/gate/internal/command"
	"github.com/kernelgate/gate/gate/internal/evidence"
	"github.com/kernelgate/gate/gate/internal/plan"
	"github.com/kernelgate/gate/gate/internal/printable"
)

// sanitizerLimit ends a search that does not end: racecheck runs a kernel
// hundreds of times slower.
const sanitizerLimit = 10 * time.Minute

func init() {
	tiers[evidence.Sanitizer] = tier{measure: (*Bench).sanitizeEach, audit: auditSanitizer} // its raw input is named by its tool
}

// sanitizeEach searches the units one by one: each tool has a process for each.
func (c *Bench) sanitizeEach(ctx context.Context, s plan.Step, l *evidence.Ledger) error {
	for i, u := range c.units(s.Tasks) {
		r, err := c.sanitizeUnit(ctx, u)
		if err := enter(l)([]*evidence.Record{r}, err); err != nil {
			return err
		}
		c.reach(float64(i+1) / float64(len(s.Tasks)))
	}
	return nil
}

// sanitizeUnit runs one call of one unit under its tool of compute-sanitizer.
func (c *Bench) sanitizeUnit(ctx context.Context, u unit) (*evidence.Record, error) {
	if c.sanitizer == "" {
		return c.failed(evidence.Sanitizer, u, &evidence.Failure{Kind: evidence.Tool, Message: c.sanitizerWhy}), nil
	}
	c.say("searching %s with %s on %s", u.kernel, u.tool, u.on.Name)
	log, s, end, err := c.watch(ctx, watcher{c.sanitizer, sanitizerLimit, sanitizerArgs(u.tool)}, []unit{u})
	if err != nil {
		return nil, fmt.Errorf("searching %s: %w", u.kernel, err)
	}
	log = []byte(printable.Text(string(log)))
	v, f := searched(u.tool, log, s, end)
	if f != nil {
		r := c.failed(evidence.Sanitizer, u, f)
		if unsettles(f) {
			return r, c.probe(ctx)
		}
		return r, nil
	}
	r := c.record(evidence.Sanitizer, u)
	r.Provenance.Profiler, r.Provenance.Protocol = c.sanitizerVersion, s.config.Protocol
	r.Metrics = evidence.Metrics{"sanitizer." + u.tool: v}
	return r, c.keep(r, "", map[string][]byte{u.tool + ".txt": log})
}

// sanitizerArgs are the options of one tool. What the harness reports as a failed
// call of CUDA is not counted a second time.
func sanitizerArgs(tool string) []string {
	return []string{"--tool", tool, "--target-processes", "all", "--report-api-errors", "no", "--print-limit", "20", "--log-file"}
}

// searched is what one process found. A kernel that a tool ended breaks the
// harness as well, so findings come before the harness's own words.
func searched(tool string, log []byte, s *stream, end command.Result) (evidence.Value, *evidence.Failure) {
	v, err := findings(tool, log)
	switch {
	case end.Stopped != "":
		return v, &evidence.Failure{Kind: evidence.Tool, Message: tool + " was killed: " + end.Stopped}
	case err == nil && v.Number > 0 && s.config != nil:
		return v, nil
	case len(s.errors) > 0:
		return v, s.errors[0].fault()
	case err != nil:
		return v, &evidence.Failure{Kind: evidence.Tool, Message: fmt.Sprintf("%s said nothing that can be used: %v (%s)", tool, err, ending("compute-sanitizer", end))}
	case !s.ended || end.Code != 0:
		return v, &evidence.Failure{Kind: evidence.Tool, Message: ending("compute-sanitizer", end)}
	}
	return v, nil
}

var (
	summary  = regexp.MustCompile(`^========= (?:ERROR SUMMARY: ([0-9]+) errors?|RACECHECK SUMMARY: ([0-9]+) hazards? displayed \([0-9]+ errors?, [0-9]+ warnings?\))$`)
	location = regexp.MustCompile(`\bat (.+)\+0x[0-9a-f]+(?: in (\S+:[0-9]+))?`)
)

// findings counts what a tool of compute-sanitizer found, and names the place of
// the first. A log without findings holds its heading and its summary and
// nothing else: any other line could be a search that did not happen.
func findings(tool string, log []byte) (evidence.Value, error) {
	var total, other, where string
	heads, text := 0, strings.TrimSuffix(string(bytes.TrimSpace(log)), "\n")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " ")
		m := summary.FindStringSubmatch(line)
		switch {
		case line == "========= COMPUTE-SANITIZER":
			heads++
		case m != nil && total != "":
			return evidence.Value{}, errors.New("it sums up twice")
		case m != nil && (m[2] != "") != (tool == "racecheck"):
			return evidence.Value{}, fmt.Errorf("%q is not a summary of %s", line, tool)
		case m != nil:
			total = m[1] + m[2]
		case line != "" && line != "=========" && other == "":
			other = line
		}
		if at := location.FindStringSubmatch(line); where == "" && at != nil {
			where = strings.TrimSpace(at[1] + " " + at[2])
		}
	}
	n, err := strconv.Atoi(total)
	switch {
	case heads != 1:
		return evidence.Value{}, fmt.Errorf("it began %d times", heads)
	case err != nil:
		return evidence.Value{}, errors.New("it holds no summary: " + printable.Cut(other, 200))
	case n == 0 && other != "":
		return evidence.Value{}, fmt.Errorf("it found nothing and says %q", printable.Cut(other, 200))
	}
	v := evidence.Of(float64(n), "")
	if n > 0 {
		v = v.In(printable.Cut(where, 200))
	}
	return v, nil
}

// auditSanitizer counts again what the tool printed.
func auditSanitizer(_ Auditor, r *evidence.Record, raw map[string][]byte) error {
	v, err := findings(r.Tool, raw[r.Tool+".txt"])
	if err != nil {
		return fmt.Errorf("its output of %s: %w", r.Tool, err)
	}
	return sameFigures(r.Metrics, evidence.Metrics{"sanitizer." + r.Tool: v})
}
