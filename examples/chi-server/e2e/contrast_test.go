package e2e

// contrasts is a script that returns the texts of the page whose contrast to their background is below level AA of
// WCAG 2.2 (1.4.3).
const contrasts = `(() => {
	const parts = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
	window.luminance = (colour) => {
		const [r, g, b] = parts(colour).slice(0, 3).map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (node) => {
		for (; node; node = node.parentElement) {
			const colour = getComputedStyle(node).backgroundColor;
			if (parts(colour)[3] !== 0) return colour;
		}
		return "rgb(255, 255, 255)";
	};
	const poor = [];
	for (const node of document.querySelectorAll("body *")) {
		const own = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.textContent.trim());
		if (!own || !node.checkVisibility() || node.disabled || node.closest("script, option")) continue;
		const [light, dark] = [luminance(getComputedStyle(node).color), luminance(behind(node))].sort((a, b) => b - a);
		const ratio = (light + 0.05) / (dark + 0.05);
		if (ratio < 4.5) poor.push(node.tagName + " " + node.textContent.trim().slice(0, 30) + " " + ratio.toFixed(2));
	}
	return poor;
})()`
