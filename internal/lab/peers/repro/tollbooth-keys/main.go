// tollbooth: LimitByKeys lets two clients share a count.
package main

import (
	"fmt"
	"os"

	"github.com/didip/tollbooth/v8"
)

func main() {
	l := tollbooth.NewLimiter(1, nil)
	first := tollbooth.LimitByKeys(l, []string{"a|b", "c"})
	second := tollbooth.LimitByKeys(l, []string{"a", "b|c"})
	fmt.Println("first request of a|b and c:", first, "- first request of a and b|c:", second)
	if second != nil {
		os.Exit(1)
	}
}
