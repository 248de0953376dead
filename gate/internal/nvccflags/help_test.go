package nvccflags

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/kernelgate/gate/gate/internal/toolchain"
)

var update = flag.Bool("update", false, "rewrite testdata from the compiler that is installed, and gate/docs/flags.md")

var findCompiler = sync.OnceValues(func() (*toolchain.Toolchain, error) {
	dir, err := toolchain.CacheDir(os.Getenv)
	if err != nil {
		return nil, err
	}
	return toolchain.Find(context.Background(), toolchain.Options{Env: os.Getenv, CacheDir: dir})
})

// compiler is the installed nvcc of the tables' version, with its folder.
func compiler(t *testing.T) (tc *toolchain.Toolchain, bin string) {
	t.Helper()
	tc, err := findCompiler()
	switch {
	case err != nil && os.Getenv("GATE_REQUIRE_NVCC") == "1":
		t.Fatal(err)
	case err != nil:
		t.Skip("no CUDA compiler: ", err)
	case tc.Version != version:
		t.Skipf("nvcc is %s, the tables are of %s", tc.Version, version)
	}
	return tc, filepath.Dir(tc.NVCC)
}

// A helped option is what --help prints of one: its names, what it takes, and
// the values that it allows, if they are a closed list.
type helped struct {
	names  []string
	takes  string
	values []string
}

func (h helped) String() string {
	return strings.TrimRight(fmt.Sprintf("%s | %s | %s", strings.Join(h.names, " "), h.takes, strings.Join(h.values, " ")), " ")
}

var (
	heading  = regexp.MustCompile(`^(--\S+)(?: (.*?))?\s+(?:\((-\S+)\)|(--\S+)|--register-link-binaries <file)\s*$`)
	closed   = regexp.MustCompile(`Allowed values for this option:\s+([^.]*)\.`)
	inPlace  = regexp.MustCompile(`^[{[<](.*)[}\]>]$`)
	listSign = strings.NewReplacer("'", "", ",", " ", "|", " ")
)

// parseHelp reads the options of nvcc, ptxas or nvlink out of their --help.
func parseHelp(text string) []helped {
	var out []helped
	var body string
	end := func() {
		if len(out) == 0 {
			return
		}
		h := &out[len(out)-1]
		body = strings.Join(strings.Fields(body), " ")
		switch m, takes := closed.FindStringSubmatch(body), inPlace.FindStringSubmatch(h.takes); {
		case m != nil:
			h.values = strings.Fields(listSign.Replace(m[1]))
		case takes != nil && strings.ContainsAny(takes[1], "|,"):
			h.values = strings.Fields(listSign.Replace(takes[1]))
		}
		body = ""
	}
	for line := range strings.Lines(text) {
		m := heading.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			body += " " + line
			continue
		}
		end()
		h := helped{names: []string{m[1]}, takes: strings.TrimSpace(m[2])}
		if m[3] != "" {
			h.names = append(h.names, m[3])
		}
		out = append(out, h)
	}
	end()
	return out
}

// tools are the programs whose --help lists all options.
var tools = map[string]*table{"nvcc": &nvcc, "ptxas": &ptxas, "nvlink": &nvlink}

func helpFile(tool string) string { return filepath.Join("testdata", tool+"-"+version+".txt") }

// recorded is what a tool's --help said when the table was made.
func recorded(t *testing.T, tool string) []helped {
	t.Helper()
	data, err := os.ReadFile(helpFile(tool))
	if err != nil {
		t.Fatal(err)
	}
	var out []helped
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n")+" ", " | ")
		h := helped{names: strings.Fields(f[0])}
		if len(f) > 1 {
			h.takes = strings.TrimSpace(f[1])
		}
		if len(f) > 2 {
			h.values = strings.Fields(f[2])
		}
		out = append(out, h)
	}
	if len(out) < 30 {
		t.Fatalf("%s lists %d options", helpFile(tool), len(out))
	}
	return out
}

func TestRecordedHelpIsTheCompilers(t *testing.T) {
	_, bin := compiler(t)
	for tool := range tools {
		text, err := exec.Command(filepath.Join(bin, tool), "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("%s --help: %v", tool, err)
		}
		var b strings.Builder
		for _, h := range parseHelp(string(text)) {
			fmt.Fprintln(&b, h)
		}
		if *update {
			if err := os.WriteFile(helpFile(tool), []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(helpFile(tool))
		if err != nil || string(data) != b.String() {
			t.Errorf("%s --help prints other options than %s (%v); -update shows which", tool, helpFile(tool), err)
		}
		// Every line that begins with -- is an option: none is overlooked.
		if n := strings.Count(string(text), "\n--"); n != len(recorded(t, tool)) {
			t.Errorf("%s --help prints %d options, %d are recorded", tool, n, len(recorded(t, tool)))
		}
	}
}

// TestTablesListEveryOption holds both ways: an option without a row fails, and
// so does a row that no option stands for, or one that takes something else.
func TestTablesListEveryOption(t *testing.T) {
	for tool, table := range tools {
		known := map[string]bool{}
		for _, h := range recorded(t, tool) {
			for _, n := range h.names {
				if known[n] {
					t.Errorf("%s: %s is printed twice", tool, n)
				}
				known[n] = true
			}
			o := table.named(h.names[0])
			if o == nil {
				t.Errorf("%s %s is in no table", tool, h.names[0])
				continue
			}
			if !slices.Equal(o.names, h.names) {
				t.Errorf("%s: the table says %q, --help says %q", tool, o.names, h.names)
			}
			if o.refused == "" {
				sameValue(t, tool, o, h)
			}
		}
		for _, o := range table.options {
			for _, n := range o.names {
				if !known[n] {
					t.Errorf("%s has no option %s", tool, n)
				}
			}
		}
	}
}

// untold are options that take a value of which --help does not say so.
var untold = []string{"--def-load-cache", "--def-store-cache", "--force-load-cache", "--force-store-cache", "--device-stack-protector"}

func sameValue(t *testing.T, tool string, o *option, h helped) {
	t.Helper()
	if (o.value.shown != "") != (h.takes != "") && !slices.Contains(untold, h.names[0]) {
		t.Errorf("%s %s takes %q, the table says %q", tool, h.names[0], h.takes, o.value.shown)
	}
	if isList := strings.HasSuffix(h.takes, ",..."); isList != (o.value.list || o.value.phase != nil) && h.names[0] != "--maxntid" {
		t.Errorf("%s %s takes %q, as a list in the table: %v", tool, h.names[0], h.takes, o.value.list)
	}
	if len(h.values) == 0 || o.value.shown == "" || strings.Contains(o.value.shown, "number") {
		return
	}
	for _, v := range h.values {
		if !o.value.ok(v) {
			t.Errorf("%s %s allows %q, the table does not", tool, h.names[0], v)
		}
	}
	if n := strings.Count(o.value.shown, "|") + 1; n != len(h.values) {
		t.Errorf("%s %s allows %q, the table %q", tool, h.names[0], h.values, o.value.shown)
	}
}

func TestNoNameStandsTwice(t *testing.T) {
	for _, table := range []*table{&nvcc, &ptxas, &nvlink, &hostCompiler, &hostLinker} {
		seen := map[string]bool{}
		for _, o := range table.options {
			for _, n := range o.names {
				if seen[n] || !strings.HasPrefix(n, "-") {
					t.Errorf("%s: %q stands twice, or is not a name", table.program, n)
				}
				seen[n] = true
			}
		}
		for _, n := range strings.Fields(table.joined) {
			if o := table.named(n); len(n) != 2 || o == nil || o.refused == "" {
				t.Errorf("%s: %q is not a refused option of one letter", table.program, n)
			}
		}
	}
}
