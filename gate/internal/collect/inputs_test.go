package collect

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProfileReadsInputsThatAreThere: a profile takes them from the folder of a check,
// and does not make a folder for the one input that it needs.
func TestProfileReadsInputsThatAreThere(t *testing.T) {
	makes := "for last in \"$@\"; do [ \"$before\" = --data ] && data=$last; before=$last; done\n" +
		"[ \"$1\" = prepare ] && echo made >>made && mkdir \"$data/small-8\"\n" + say(configLine, endLine())
	c, _ := fake(t, makes)
	c.data = filepath.Join(t.TempDir(), "data")
	folder := filepath.Join(c.data, "op")
	for _, step := range []struct {
		mode  string
		given bool
	}{{"profile", false}, {"check", true}, {"profile", true}, {"time", true}} {
		args, reads, err := c.ask(context.Background(), step.mode, []unit{of("op/k", "small")})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.Join(args, " "), " --data "+folder) != step.given || slices.Contains(reads, folder) != step.given {
			t.Errorf("%s: %q, reads %q", step.mode, args, reads)
		}
	}
	made, err := os.ReadFile(filepath.Join(filepath.Dir(c.program), "made"))
	if err != nil || string(made) != "made\n" {
		t.Errorf("made %q, %v", made, err)
	}
}
