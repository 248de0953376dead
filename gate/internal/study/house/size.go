package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"slices"
)

// writeLines writes the lines of each package and their sum.
func writeLines(w io.Writer, h *house) {
	total := 0
	fmt.Fprintln(w, "# Non-test Go lines")
	for _, r := range h.packages {
		if r.counted {
			total += r.lines
			fmt.Fprintf(w, "%7d  %s\n", r.lines, r.name)
		}
	}
	fmt.Fprintf(w, "%7d  all\n\n", total)
}

// longest is how many of the longest functions are named.
const longest = 5

// writeFunctions writes how many lines functions have, from func to the last brace.
func writeFunctions(w io.Writer, h *house) {
	type size struct {
		name  string
		lines int
	}
	var all []size
	h.each(func(r *room, f *ast.FuncDecl) {
		lines := h.fset.Position(f.End()).Line - h.fset.Position(f.Pos()).Line + 1
		all = append(all, size{title(r, f), lines})
	})
	slices.SortFunc(all, func(a, b size) int { return cmp.Or(a.lines-b.lines, cmp.Compare(a.name, b.name)) })
	if len(all) == 0 {
		return
	}
	at := func(share int) int { return all[(len(all)-1)*share/100].lines }
	fmt.Fprintf(w, "# Functions\n%d functions; lines: p50 %d, p90 %d, max %d\n", len(all), at(50), at(90), at(100))
	for _, s := range slices.Backward(all[max(0, len(all)-longest):]) {
		fmt.Fprintf(w, "%7d  %s\n", s.lines, s.name)
	}
	fmt.Fprintln(w)
}
