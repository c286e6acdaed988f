package statuspage

// Outdate lets the page be rendered again, as if a second had passed.
func (p *Page) Outdate() { p.rendered.view = nil }
