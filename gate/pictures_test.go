package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kernelgate/gate/gate/internal/report"
	"github.com/kernelgate/gate/gate/internal/verdict"
)

var pictures = flag.String("pictures", "", "draw what GitHub would show into this folder, by cmark-gfm and chromium")

// TestPictures draws the comment, the check and the summary of verdicts that
// simulated machines came to: what gate publish would send, as a reader sees it.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("-pictures names no folder (make pictures)")
	}
	out, err := filepath.Abs(*pictures)
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(v victim){
		"pass": func(v victim) { v.change(2) },
		"fail": func(v victim) {
			v.change(2)
			v.run("sed", "-i", "s/latency=10000/latency=10700/", "kernels/toy/scale/scale.cu")
		},
		"inconclusive": func(v victim) { v.change(2) },
		"sixty": func(v victim) {
			for i := range 58 {
				v.run("cp", "-r", "kernels/toy/scale", fmt.Sprintf("kernels/toy/k%02d", i))
				v.run("sed", "-i", fmt.Sprintf("s/2 . in/%d * in/", i+4), fmt.Sprintf("kernels/toy/k%02d/scale.cu", i))
			}
			v.run("git", "add", "-A")
			v.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qm", "sixty kernels")
			for i := range 14 {
				v.run("sed", "-i", fmt.Sprintf("s/latency=10000/latency=%d/; s/in.i./%d * in[i]/", []int{10000, 10000 + 150*i}[i%2], 101+2*i), fmt.Sprintf("kernels/toy/k%02d/scale.cu", 4*i))
			}
			v.run("sed", "-i", "s/{/{ !/", "kernels/toy/k57/scale.cu")
		},
	} {
		v := newVictim(t)
		edit(v)
		v.run("git", "checkout", "-q", "-b", "change")
		v.run("git", "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-qam", "change")
		if name == "inconclusive" {
			v.env = append(v.env, "FAKE_GPU=")
		}
		v.env = append(v.env, "GITHUB_ACTIONS=")
		cmd, log := v.command("gate", "check", "--out", filepath.Join(v.cache, "out"))
		cmd.Run()
		read, err := verdict.Read(filepath.Join(v.cache, "out", "verdict.json"))
		if err != nil {
			t.Fatalf("%v\n%s", err, log)
		}
		for what, body := range v.pages(read) {
			v.draw(filepath.Join(out, what+"-"+name+".png"), body)
		}
	}
}

// pages are what a reader sees of a verdict on GitHub, as HTML.
func (v victim) pages(read *verdict.Verdict) map[string]string {
	event := filepath.Join(v.cache, "event.json")
	text := `{"repository":{"id":1,"full_name":"o/r"},"pull_request":{"number":7,"head":{"sha":"0123456789abcdef0123456789abcdef01234567","repo":{"id":1}},"base":{"sha":"0","ref":"main"}}}`
	if err := os.WriteFile(event, []byte(text), 0o644); err != nil {
		v.Fatal(err)
	}
	v.env = append(v.env, "GITHUB_ACTIONS=true", "GITHUB_EVENT_NAME=pull_request", "GITHUB_EVENT_PATH="+event)
	cmd, log := v.command("gate", "publish", "--dry-run", filepath.Join(v.cache, "out"))
	cmd.Run()
	var check, comment struct {
		Body, Conclusion string
		Output           struct{ Title, Summary string }
	}
	for _, request := range strings.Split(log.String(), "https://api.github.com/repos/o/r/")[1:] {
		at, body, _ := strings.Cut(request, "\n")
		switch {
		case strings.HasSuffix(at, "/comments"):
			json.NewDecoder(strings.NewReader(body)).Decode(&comment)
		case strings.HasPrefix(at, "check-runs/"):
			json.NewDecoder(strings.NewReader(body)).Decode(&check)
		}
	}
	if check.Output.Title == "" || comment.Body == "" {
		v.Fatalf("nothing would be published\n%s", log)
	}
	sign := map[string]string{"success": "#1a7f37", "failure": "#cf222e", "action_required": "#9a6700"}[check.Conclusion]
	head := fmt.Sprintf(`<h2><span style="color:%s">●</span> gate — %s</h2><p class=muted>%s</p>`, sign, html.EscapeString(check.Output.Title), check.Conclusion)
	notes := ""
	for _, a := range report.Annotations(read) {
		if len(notes) < 4000 {
			notes += fmt.Sprintf(`<div class="note %s"><b>%s</b> %s#L%d<br><pre>%s</pre></div>`, a.Level, html.EscapeString(a.Title), html.EscapeString(a.File), max(a.Line, 1), html.EscapeString(a.Text))
		}
	}
	return map[string]string{
		"comment": `<div class=box><div class=bar><b>github-actions</b> bot commented</div><div class=body>` + v.markdown(comment.Body) + `</div></div>`,
		"check":   head + v.markdown(check.Output.Summary) + `<h3>Annotations</h3>` + notes,
		"summary": `<div class=box><div class=bar>gate summary</div><div class=body>` + v.markdown(report.Markdown(read, report.SummaryBytes)) + `</div></div>`,
	}
}

// markdown is GitHub's own renderer.
func (v victim) markdown(text string) string {
	cmd := exec.Command("cmark-gfm", "--unsafe", "-e", "table", "-e", "autolink", "-e", "strikethrough", "-e", "tagfilter", "-e", "tasklist")
	cmd.Stdin = strings.NewReader(text)
	out, err := cmd.Output()
	if err != nil {
		v.Fatalf("cmark-gfm: %v", err)
	}
	return string(out)
}

const pageStyle = `<!doctype html><meta charset=utf-8><style>
body { font: 14px/1.5 "Liberation Sans", "Noto Color Emoji", sans-serif; color: #1f2328; margin: 16px; width: 912px }
table { border-collapse: collapse; display: block; max-width: 100%; overflow: auto; margin: 0 0 16px } th, td { border: 1px solid #d0d7de; padding: 6px 13px } tr:nth-child(2n) { background: #f6f8fa }
code { font: 85% "DejaVu Sans Mono", monospace; background: #eff1f3; border-radius: 6px; padding: .2em .4em; white-space: break-spaces } pre { font: 85% "DejaVu Sans Mono"; background: #f6f8fa; padding: 8px; overflow: auto; white-space: pre-wrap }
.box { border: 1px solid #d0d7de; border-radius: 6px } .bar { background: #f6f8fa; padding: 8px 16px; border-bottom: 1px solid #d0d7de } .body { padding: 16px } .muted { color: #59636e }
.note { border: 1px solid #d0d7de; border-left: 4px solid #9a6700; padding: 8px; margin: 8px 0 } .note.failure { border-left-color: #cf222e } .note pre { margin: 4px 0 0; padding: 0; background: none } h3 { font-size: 1.25em; margin: 0 0 16px }
</style>`

// mostHeight cuts a long page, as a screen does.
const mostHeight = 1300

// draw makes a small picture of a page.
func (v victim) draw(path, body string) {
	dir := v.TempDir()
	page, shot := filepath.Join(dir, "page.html"), filepath.Join(dir, "shot.png")
	if err := os.WriteFile(page, []byte(pageStyle+body), 0o644); err != nil {
		v.Fatal(err)
	}
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+dir, fmt.Sprintf("--window-size=944,%d", mostHeight), "--screenshot="+shot, "file://"+page)
	if out, err := cmd.CombinedOutput(); err != nil {
		v.Fatalf("chromium: %v\n%s", err, out)
	}
	f, err := os.Open(shot)
	if err != nil {
		v.Fatal(err)
	}
	defer f.Close()
	whole, err := png.Decode(f)
	if err != nil {
		v.Fatal(err)
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduced(whole)); err != nil {
		v.Fatal(err)
	}
	if err := os.WriteFile(path, small.Bytes(), 0o644); err != nil {
		v.Fatal(err)
	}
	v.Logf("%s: %d bytes", filepath.Base(path), small.Len())
}

// reduced is a picture without the empty rows at its end, in 256 colours.
func reduced(from image.Image) image.Image {
	bounds, count := from.Bounds(), map[color.RGBA]int{}
	last := 0
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			r, g, b, _ := from.At(x, y).RGBA()
			c := color.RGBA{uint8(r>>8) | 7, uint8(g>>8) | 7, uint8(b>>8) | 7, 255}
			if count[c]++; c != (color.RGBA{255, 255, 255, 255}) {
				last = y
			}
		}
	}
	var colours color.Palette
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.Color) int { return count[b.(color.RGBA)] - count[a.(color.RGBA)] })
	to := image.NewPaletted(image.Rect(0, 0, bounds.Dx(), min(bounds.Dy(), last+16)), colours[:min(256, len(colours))])
	draw.Draw(to, to.Bounds(), from, bounds.Min, draw.Src)
	return to
}
