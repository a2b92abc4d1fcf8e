# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows as a bar chart, readable on a light and on a dark background. Pure."""
import html

WIDTH, LEFT, RIGHT, TOP, STEP, BAR = 760, 170, 110, 56, 26, 14

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.small { font-size: 11px; fill: #57606a }
.ours { fill: #0969da } .theirs { fill: #8c959f } .bare { fill: #afb8c1 }
line { stroke: #24292f; stroke-width: 1.5 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .small { fill: #9198a1 }
  .ours { fill: #4493f8 } .theirs { fill: #7d8590 } .bare { fill: #545d68 }
  line { stroke: #e6edf3 }
}
"""


def kind(name):
    if name.startswith("harpe-gov"):
        return "ours"
    return "bare" if name in ("true", "floor") else "theirs"


def bar(row, y, scale):
    p50, p95 = LEFT + row["p50_ms"] * scale, LEFT + min(row["p95_ms"] * scale, WIDTH - LEFT)
    middle = y + BAR / 2
    return (f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{html.escape(row["name"])}</text>'
            f'<rect class="{kind(row["name"])}" x="{LEFT}" y="{y}" width="{p50 - LEFT:.1f}"'
            f' height="{BAR}" rx="2"/>'
            f'<line x1="{p50:.1f}" x2="{p95:.1f}" y1="{middle}" y2="{middle}"/>'
            f'<text class="small" x="{max(p50, p95) + 6:.1f}" y="{y + 11}">'
            f'{row["p50_ms"]:.0f} ms</text>\n')


def svg(rows, where):
    """@rows as table.summarise() gives them; @where is the line that says where it was measured."""
    scale = (WIDTH - LEFT - RIGHT) / max(row["p95_ms"] for row in rows)
    height = TOP + STEP * len(rows) + 8
    bars = "".join(bar(row, TOP + i * STEP, scale) for i, row in enumerate(rows))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            f' width="{WIDTH}" height="{height}" role="img">\n<style>{STYLE}</style>\n'
            f'<title>Time to run /bin/true</title>\n'
            f'<text x="8" y="20">Running /bin/true, from start to exit: half of the runs were '
            f'faster (bar), 95 % were (line)</text>\n'
            f'<text class="small" x="8" y="38">{html.escape(where)}</text>\n{bars}</svg>\n')
