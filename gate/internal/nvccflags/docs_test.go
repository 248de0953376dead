package nvccflags

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const (
	docs  = "../../docs/flags.md"
	intro = `# Flags of a kernel

What ` + "`flags:`" + ` in kernel.yaml may hold: the options of nvcc ` + version + ` and of the programs that it runs. What is not here is refused.
One word is one entry: ` + "`[-O3, -maxrregcount=64, -Xptxas, \"-v,-dlcm=cg\"]`" + `. Long names have two dashes, short ones one, as nvcc has them; a name
of nvcc, ptxas or nvlink that stands alone can be written with either.
A shell reads nvcc's flags, so they hold letters, digits and ` + "`" + allowed + "`" + ` alone. Names of sources and of
their folders hold none of ` + "`` " + shellSigns + " ``" + ` and no comma.
Headers lie beside the sources or in folders that ` + "`include:`" + ` names.

*May change* says what an option can act on: code of the device or the host, inputs (it sets a macro, so that ` + "`#if`" + ` can choose other files), messages.

This page is made from the tables by ` + "`go test ./gate/internal/nvccflags -update`" + `.
`
)

// page is gate/docs/flags.md.
func page() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, t := range []*table{&nvcc, &ptxas, &nvlink, &hostCompiler, &hostLinker} {
		title := t.program
		if t.passedBy != "" {
			title = t.passedBy + ": " + title
		}
		fmt.Fprintf(&b, "\n## %s\n\n| accepted | value | may change |\n|---|---|---|\n", title)
		for _, o := range t.options {
			if o.refused == "" {
				fmt.Fprintf(&b, "| %s | %s | %s |\n", code(o.names), shown(o.value), o.changes)
			}
		}
		b.WriteString("\n| refused | because |\n|---|---|\n")
		for i, last := 0, 0; i < len(t.options); i = last {
			why := t.options[i].refused
			var names []string
			for last = i; last < len(t.options) && t.options[last].refused == why; last++ {
				names = append(names, code(t.options[last].names))
			}
			if why != "" {
				fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(names, ", "), why)
			}
		}
	}
	return b.String()
}

// code shows the names of an option, one that is both long and short once.
func code(names []string) string {
	if len(names) == 2 && names[0] == "-"+names[1] {
		names = names[:1]
	}
	return "`" + strings.Join(names, "` `") + "`"
}

func shown(v value) string {
	text := strings.ReplaceAll(v.shown, "|", `\|`)
	if v.list {
		text += ", with commas"
	}
	return text
}

func TestPageShowsTheTables(t *testing.T) {
	if *update {
		if err := os.WriteFile(docs, []byte(page()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(docs)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != page() {
		t.Errorf("%s is not made from these tables; -update writes it", docs)
	}
}
