// The limits that visitors choose.

package playground

import (
	"net/http"

	"github.com/penstock-go/penstock/algorithms"
	"github.com/penstock-go/penstock/examples/chi-server/playground/instruments"
)

// readLimit reads {"limit":"token-bucket 10/10s burst 10"}. It answers 400 to a
// limit outside the bounds.
func readLimit(w http.ResponseWriter, r *http.Request) (algorithms.Limit, bool) {
	var ask struct{ Limit string }
	if !read(w, r, &ask) {
		return algorithms.Limit{}, false
	}
	limit, why := instruments.ReadLimit(ask.Limit)
	if why != "" {
		refuse(w, http.StatusBadRequest, why)
	}
	return limit, why == ""
}

// compare answers a query of instruments.Compare.
func compare(w http.ResponseWriter, r *http.Request) {
	switch comparison, why, err := instruments.Compare(r.Context(), r.URL.Query()); {
	case err != nil:
		refuse(w, http.StatusInternalServerError, "the comparison could not be made")
	case why != "":
		refuse(w, http.StatusBadRequest, why)
	default:
		writeJSON(w, http.StatusOK, comparison)
	}
}
