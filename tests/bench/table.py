# SPDX-License-Identifier: GPL-2.0-or-later
"""From samples to a table. Pure."""


def percentile(samples, p):
    """Between the two nearest ranks, as numpy does."""
    ordered = sorted(samples)
    at = (len(ordered) - 1) * p / 100
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def read_rounds(text):
    """The stopwatch's lines as {name: [milliseconds]} and {name: status} of what failed."""
    samples, failed = {}, {}
    for line in text.splitlines():
        name, nanoseconds, status = line.split()
        samples.setdefault(name, []).append(int(nanoseconds) / 1e6)
        if status != "0":
            failed[name] = int(status)
    return samples, failed


def summarise(samples):
    return [{"name": name, "n": len(ms), "p50_ms": round(percentile(ms, 50), 2),
             "p95_ms": round(percentile(ms, 95), 2)}
            for name, ms in sorted(samples.items(), key=lambda item: percentile(item[1], 50))]


def ratios(rows):
    """What is asked of the figures: p50 of harpe-gov to that of the others, and p95 to p50."""
    p50 = {row["name"]: row["p50_ms"] for row in rows}
    figures = {f"p50_to_{name}": round(p50["harpe-gov"] / ms, 3)
               for name, ms in p50.items() if name != "harpe-gov"}
    if "harpe-gov-limits" in p50:
        figures["p50_other_limits_to_defaults"] = round(p50["harpe-gov-limits"] / p50["harpe-gov"], 3)
    if {"harpe-gov-cold", "systemd-run-scope"} <= p50.keys():
        figures["p50_cold_to_systemd-run-scope"] = round(
            p50["harpe-gov-cold"] / p50["systemd-run-scope"], 3)
    for row in rows:
        if row["name"].startswith("harpe-gov"):
            figures[f"p95_to_p50_{row['name']}"] = round(row["p95_ms"] / row["p50_ms"], 3)
    return figures


def format_rows(rows):
    base = {row["name"]: row["p50_ms"] for row in rows}
    lines = [f"{'':22}{'n':>5}{'p50 ms':>10}{'p95 ms':>10}{'/ floor':>10}{'harpe-gov /':>13}"]
    for row in rows:
        lines.append(f"{row['name']:22}{row['n']:5}{row['p50_ms']:10.1f}{row['p95_ms']:10.1f}"
                     f"{row['p50_ms'] / base['floor']:10.2f}"
                     f"{base['harpe-gov'] / row['p50_ms']:13.2f}")
    return "\n".join(lines)


def format_figures(figures):
    return "\n".join(f"{name:44}{value:>12}" for name, value in figures.items())
