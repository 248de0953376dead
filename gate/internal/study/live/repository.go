package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed repo/memo.cc
var memo string

// A plant is one kernel of a temporary repository: a copy of one of ours.
type plant struct {
	name  string // "fixtures/e32_00": its folder below kernels
	from  string // "fixtures/r02_extra_work"
	group string // what it is counted under
	extra int    // multiply-adds; -1 for a kernel that takes none
	tail  int    // percent of the processes in which it takes almost twice as long, of the code that can; 0 for other code
}

const (
	r11     = "attention/r11_fa2_mma"
	r02     = "attention/r02_minimal_fp16"
	fixture = "fixtures/r02_extra_work"
)

// A repository is a git repository of copies.
type repository struct {
	dir    string
	source string // our kernels folder
}

// newRepository makes a folder with the op and git in it.
func newRepository(ctx context.Context, dir, source string) (*repository, error) {
	r := &repository{dir: dir, source: source}
	op := filepath.Join(dir, "kernels", "attention")
	if err := os.MkdirAll(op, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"attention.h", "attention.cc", "op.yaml"} {
		data, err := os.ReadFile(filepath.Join(source, "attention", name))
		if err != nil {
			return nil, err
		}
		if name == "op.yaml" {
			text := strings.Replace(string(data), "sources: [attention.cc]", "sources: [memo.cc]", 1)
			if text == string(data) {
				return nil, fmt.Errorf("%s/attention/op.yaml: no \"sources: [attention.cc]\"", source)
			}
			data = []byte(text)
		}
		if err := os.WriteFile(filepath.Join(op, name), data, 0o644); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(op, "memo.cc"), []byte(memo), 0o644); err != nil {
		return nil, err
	}
	return r, r.git(ctx, "init", "-q", "-b", "main")
}

var casesLine = regexp.MustCompile(`(?m)^cases:.*$`)

// add copies kernels into the repository, over what is there.
func (r *repository) add(plants []plant) error {
	for _, p := range plants {
		if err := r.copy(p); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (r *repository) copy(p plant) error {
	from, to := filepath.Join(r.source, filepath.FromSlash(p.from)), filepath.Join(r.dir, "kernels", filepath.FromSlash(p.name))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return err
		}
		if e.Name() == "kernel.yaml" {
			if data, err = manifestOf(string(data), p); err != nil {
				return err
			}
		}
		if strings.HasSuffix(e.Name(), ".cu") && p.tail != 0 {
			if data, err = withTail(string(data), max(0, p.tail)); err != nil {
				return err
			}
		}
		if strings.HasSuffix(e.Name(), ".cu") {
			data = append(data, ownCode(p.name)...)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ownCode makes a copy a code of its own, which is measured by itself: a
// variable on the device that nothing reads.
func ownCode(name string) string {
	return fmt.Sprintf("\n__device__ int %s = 1;\n", regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(name, "_"))
}

// noTail is the tail of the base: the same device code, slow in no process.
const noTail = -1

// withTail is the fixture with a process that draws, once, whether each call
// waits: 120,000 cycles are four fifths of the fixture's 75 µs on an H200.
func withTail(text string, percent int) ([]byte, error) {
	for _, change := range [][2]string{
		{"#include <cuda_fp16.h>\n", "#include <cuda_fp16.h>\n\n#include <random>\n"},
		{"half* __restrict__ o, int length, float scale) {", "half* __restrict__ o, int length, float scale, int cycles) {\n  for (const long long end = clock64() + cycles; clock64() < end;) {\n  }"},
		{"c.length, kScale);", "c.length, kScale, slow() ? 120000 : 0);"},
		{"extern \"C\" int gate_run", fmt.Sprintf("static bool slow() {\n  static const bool drawn = std::random_device{}() %% 100 < %d;\n  return drawn;\n}\n\nextern \"C\" int gate_run", percent)},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			return nil, fmt.Errorf("%s: no %q", fixture, change[0])
		}
		text = changed
	}
	return []byte(text), nil
}

// manifestOf is the copy's kernel.yaml: the case mission alone, and the
// fixture's amount of work.
func manifestOf(text string, p plant) ([]byte, error) {
	if !casesLine.MatchString(text) {
		return nil, fmt.Errorf("%s/kernel.yaml: no cases", p.from)
	}
	text = casesLine.ReplaceAllString(text, "cases: [mission]")
	if p.extra >= 0 {
		changed := strings.Replace(text, "-DEXTRA=0", fmt.Sprintf("-DEXTRA=%d", p.extra), 1)
		if !strings.Contains(text, "-DEXTRA=0") {
			return nil, fmt.Errorf("%s/kernel.yaml: no -DEXTRA=0", p.from)
		}
		text = changed
	}
	return []byte(text), nil
}

// policy writes a policy with these rules at the root.
func (r *repository) policy(name, latency string, rules ...string) error {
	text := "version: 1\nkernels: kernels/**/kernel.yaml\nstore: kernels/evidence\n"
	if latency != "" {
		text += "latency: " + latency + "\n"
	}
	text += "rules:\n  - " + strings.Join(rules, "\n  - ") + "\n"
	return os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644)
}

// detects are the effects that the profiles promise to find.
var detects = map[string]string{"standard": "2%", "strict": "1%", "loose": "3%"}

// compared is a policy that asks for typical and mean, with a floor that is
// below every tolerance.
func (r *repository) compared(profile, budget string) error {
	detect, ok := detects[profile]
	if !ok {
		return &usageError{fmt.Sprintf("there is no profile %q", profile)}
	}
	return r.policy(profile+".yaml", fmt.Sprintf("{profile: %s, budget: %s}", profile, budget),
		"{id: latency, metric: latency.typical, max_regression: "+detect+", floor: 1ns}",
		"{id: latency-mean, metric: latency.mean, max_regression: "+detect+", floor: 1ns}")
}

func (r *repository) commit(ctx context.Context, subject string) error {
	if err := r.git(ctx, "add", "-A"); err != nil {
		return err
	}
	return r.git(ctx, "-c", "user.name=live", "-c", "user.email=live@localhost", "commit", "-q", "--allow-empty", "-m", subject) // kernels that are all unchanged leave nothing to commit
}

func (r *repository) git(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}
