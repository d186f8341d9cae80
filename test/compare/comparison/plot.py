"""A picture of ratios as SVG, for light and dark pages."""

from html import escape

from .figures import Spread, digits

ROW, LEFT, WIDTH, RIGHT, HEAD = 22, 250, 420, 110, 44

STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .group { font-weight: 600 } .figure { fill: #59636e }
  .bar { fill: #7d8590 } .ours { fill: #0969da } .spread { stroke: #1f2328; stroke-width: 1.5 }
  .one { stroke: #d1242f; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .figure { fill: #9198a1 } .ours { fill: #4493f8 } .spread { stroke: #e6edf3 } .one { stroke: #f85149 }
  }
"""


def bars(title: str, groups: list[tuple[str, list[tuple[str, Spread]]]]) -> str:
    """Draws a group of bars for each scenario. A bar is the ratio of a peer to the bare
    script, and a line on it goes from least to most. The dashed line is the bare script."""
    most = max([1.0, *(s.most for _, rows in groups for _, s in rows)])
    scale = WIDTH / most
    y, parts = HEAD, []
    for name, rows in groups:
        parts.append(f'<text class="group" x="8" y="{y + 15}">{escape(name)}</text>')
        y += ROW
        for peer, s in rows:
            ours = " ours" if peer.startswith("builder") else ""
            middle = y + ROW / 2
            parts += [
                f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{escape(peer)}</text>',
                f'<rect class="bar{ours}" x="{LEFT}" y="{y + 4}" width="{s.median * scale:.1f}" height="{ROW - 8}"/>',
                f'<line class="spread" x1="{LEFT + s.least * scale:.1f}" x2="{LEFT + s.most * scale:.1f}" y1="{middle}" y2="{middle}"/>',
                f'<text class="figure" x="{LEFT + s.most * scale + 6:.1f}" y="{y + 15}">{digits(s.median)}</text>',
            ]
            y += ROW
        y += 8
    one = LEFT + scale
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {y + 8}" role="img" aria-label="{escape(title, quote=True)}">',
        f"<style>{STYLE}</style>",
        f'<text class="group" x="8" y="18">{escape(title)}</text>',
        f'<text class="figure" x="8" y="36">seconds of a peer over those of the bare script in the same round; shorter is faster</text>',
        *parts,
        f'<line class="one" x1="{one:.1f}" x2="{one:.1f}" y1="{HEAD}" y2="{y}"/>',
        "</svg>",
        "",
    ])
