// The picture: what the modest tenants and the last one are served in each second.

package main

import (
	"fmt"
	"strings"
)

const (
	wide, high = 430, 220 // of a panel
	left, top  = 44, 54
	most       = 160 // requests per second at the top of a panel
)

func picture(r *[2]result) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" font-family="sans-serif" font-size="13">`+"\n", 2*(wide+left)+20, high+top+40)
	b.WriteString("<title>Nine tenants ask for 5/s each, and one for 1 000/s, of a capacity of 100/s</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n")
	for i, name := range []string{"First come, first served", "With ShareBy"} {
		x := left + i*(wide+left)
		fmt.Fprintf(&b, `<text x="%d" y="20" font-weight="bold" fill="#222">%s</text>`+"\n", x, name)
		for _, rate := range []int{0, 45, 100} {
			fmt.Fprintf(&b, `<path d="M%d %dh%d" stroke="#ccc"/><text x="%d" y="%d" text-anchor="end" fill="#555">%d/s</text>`+"\n", x, y(rate), wide, x-4, y(rate)+4, rate)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" fill="#555">one minute</text>`+"\n", x+wide/2, high+top+22)
		line(&b, x, "#b3541e", r[i], 1)
		line(&b, x, "#1f6fb2", r[i], 0)
	}
	fmt.Fprintf(&b, `<text x="%d" y="40" fill="#b3541e">one tenant, which asks for 1 000/s</text><text x="%d" y="40" fill="#1f6fb2">nine tenants together, which ask for 45/s</text>`+"\n</svg>\n", left, left+wide/2+20)
	return b.String()
}

func y(rate int) int { return top + high - rate*high/most }

func line(b *strings.Builder, x int, colour string, r result, who int) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2" points="`, colour)
	for i, second := range r.seconds {
		fmt.Fprintf(b, "%d,%d ", x+i*wide/minute, y(min(second[who], most)))
	}
	b.WriteString("\"/>\n")
}
