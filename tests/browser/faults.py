"""What a browser finds wrong with a page: it overflows, it can't be read, it reports an error, it asks for a file."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

# Width of the window in pixels, colours, and medium. Paper is A4 upright, without its margins.
VIEWS = ((360, "light", "screen"), (360, "dark", "screen"), (1200, "light", "screen"), (1200, "dark", "screen"))
PAPER = (718, "light", "print")
HEIGHT = 900
SERIOUS = ("serious", "critical")
# What axe does not look into: a picture's text must be as large as this, in pixels, and have as much contrast.
LEAST_TEXT_PX, LEAST_CONTRAST = 10, 4.5
OVERFLOW = """() => {
    const found = [], width = document.documentElement.clientWidth
    if (document.documentElement.scrollWidth > width)
        found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`)
    for (const one of document.querySelectorAll('body *')) {
        if (!(one instanceof HTMLElement) || one.clientWidth === 0 || one.scrollWidth <= one.clientWidth) continue
        const scrolls = ['auto', 'scroll'].includes(getComputedStyle(one).overflowX)
        if (!scrolls && getComputedStyle(one).display !== 'inline' && !one.closest('[tabindex="0"]'))
            found.push(`<${one.localName} class="${one.className}"> is cut off`)
        if (scrolls && matchMedia('print').matches)
            found.push(`<${one.localName} class="${one.className}"> is cut off on paper`)
        if (scrolls && (one.tabIndex !== 0 || !one.ariaLabel || getComputedStyle(one).backgroundImage === 'none'))
            found.push(`<${one.localName} class="${one.className}"> scrolls without a name, a focus or a hint`)
    }
    return found
}"""
PICTURES = """([leastPx, leastContrast]) => {
    const rgb = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number)
    const luminance = colour => rgb(colour).map(part => part / 255)
        .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
        .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0)
    const paper = luminance(getComputedStyle(document.body).backgroundColor), found = []
    for (const text of document.querySelectorAll('svg text')) {
        const box = text.getBoundingClientRect(), svg = text.closest('svg').getBoundingClientRect()
        if (svg.width === 0) continue
        const style = getComputedStyle(text), ink = luminance(style.fill), words = text.textContent.trim()
        const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05)
        const px = parseFloat(style.fontSize) * text.getScreenCTM().a
        if (contrast < leastContrast) found.push(`'${words}' has a contrast of ${contrast.toFixed(2)}`)
        if (Math.abs(px) > 0 && px < leastPx) found.push(`'${words}' is ${px.toFixed(1)} pixels high`)
        if (box.left < svg.left - 1 || box.right > svg.right + 1) found.push(`'${words}' is cut off`)
    }
    return found
}"""
AXE = """async options => (await axe.run(document, {resultTypes: ['violations'], ...options})).violations
    .map(one => [one.impact, `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`])"""


@cache
def axe() -> str:
    """Return the code of axe-core, which its Python package brings along."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


def faults_of(page: Any, path: Path) -> list[str]:
    """Open the file ``path`` in a tab of the browser and return a line for each fault in each view."""
    heard: list[str] = []
    address = path.as_uri()
    page.on("console", lambda said: heard.append(f"console: {said.text}"))  # a report's page says nothing at all
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))
    page.on("request", lambda request: None if request.url == address else heard.append(f"request: {request.url}"))
    page.set_viewport_size({"width": VIEWS[0][0], "height": HEIGHT})
    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
    page.evaluate(axe())
    found = []
    for view in (*VIEWS, PAPER):
        found += _seen(page, *view)
    # axe would take a minute to look at all the strokes of pictures
    page.evaluate("document.querySelectorAll('svg').forEach(one => one.replaceChildren())")
    found += _told_by_axe(page, {}, *VIEWS[0])
    found += _told_by_axe(page, {"runOnly": ["color-contrast"]}, *VIEWS[3])
    page.close()
    return [*heard, *found]


def _show(page: Any, width: int, colours: str, medium: str) -> str:
    """Give the window this view; return how lines on it begin."""
    page.set_viewport_size({"width": width, "height": HEIGHT})
    page.emulate_media(color_scheme=colours, media=medium)
    return f"{width} {colours} {medium}: "


def _seen(page: Any, *view: Any) -> list[str]:
    where = _show(page, *view)
    found = page.evaluate(OVERFLOW) + page.evaluate(PICTURES, [LEAST_TEXT_PX, LEAST_CONTRAST])
    return [where + one for one in found]


def _told_by_axe(page: Any, options: dict[str, Any], *view: Any) -> list[str]:
    where = _show(page, *view)
    return [where + text for impact, text in page.evaluate(AXE, options) if impact in SERIOUS]
