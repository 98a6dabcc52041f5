#!/usr/bin/env python3
"""Draws docs/demo.svg: plays the demo in tmux to a moment of the story, pauses it, and turns the screen into an SVG.

    scripts/demo-svg.py [--plimsoll target/debug/plimsoll] [--at 02:25] [--size 118x34] [--keys ''] [OUT.svg]
    tmux capture-pane -e -p -N | scripts/demo-svg.py --stdin OUT.svg

Needs tmux (not with --stdin) and nothing else.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from xml.sax.saxutils import escape

CELL_WIDTH, CELL_HEIGHT, MARGIN, FONT_SIZE = 8.4, 18, 14, 14
BACKGROUND, INK = "#11151c", "#d5dae1"
COLOURS = ["#3b4252", "#ef6b73", "#8ccf7e", "#e5c76b", "#67b0e8", "#c47fd5", "#6cbfbf", "#b3b9b8"]
BRIGHT = ["#5a6378", "#f48a91", "#a5dd9a", "#f0d78c", "#8cc4f0", "#d3a0e0", "#8fd0d0", "#ffffff"]
# Lines of a box: which of the four arms a character has, as (dx, dy).
ARMS = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu",
    "├": "rud", "┤": "lud", "┬": "lrd", "┴": "lru", "┼": "lrud",
}
DIRECTIONS = {"l": (-0.5, 0), "r": (0.5, 0), "u": (0, -0.5), "d": (0, 0.5)}


class Style:
    """How a cell is drawn."""

    def __init__(self):
        self.ink, self.paper, self.bold, self.dim, self.reverse = None, None, False, False, False

    def key(self):
        ink, paper = self.ink or INK, self.paper
        if self.reverse:
            ink, paper = paper or BACKGROUND, ink
        return ink, paper, self.bold, self.dim

    def take(self, codes):
        """Applies the numbers of an SGR sequence."""
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.__init__()
            elif code in (1, 2, 7):
                setattr(self, {1: "bold", 2: "dim", 7: "reverse"}[code], True)
            elif code == 22:
                self.bold = self.dim = False
            elif code == 27:
                self.reverse = False
            elif code in (38, 48):
                self.set(code == 38, extended(codes))
            elif code in (39, 49):
                self.set(code == 39, None)
            else:
                for first, palette in ((30, COLOURS), (40, COLOURS), (90, BRIGHT), (100, BRIGHT)):
                    if first <= code < first + 8:
                        self.set(first in (30, 90), palette[code - first])

    def set(self, ink, colour):
        if ink:
            self.ink = colour
        else:
            self.paper = colour


def extended(codes):
    """The colour of 5;N or 2;R;G;B, which are taken from the list."""
    kind = codes.pop(0) if codes else None
    if kind == 2:
        red, green, blue = codes[:3]
        del codes[:3]
        return f"#{red:02x}{green:02x}{blue:02x}"
    number = codes.pop(0) if codes else 0
    if number < 16:
        return (COLOURS + BRIGHT)[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    levels = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#%02x%02x%02x" % (levels[number // 36], levels[number // 6 % 6], levels[number % 6])


def cells(line, style):
    """Characters of a captured line with their styles. The style goes on to the next line."""
    found = []
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b["):
            style.take(part[2:-1])
        else:
            found += [(letter, style.key()) for letter in part if letter >= " "]
    return found


def number(value):
    return f"{value:.2f}".rstrip("0").rstrip(".")


def draw_run(column, row, text, look, out):
    """A run of cells that look the same."""
    ink, paper, bold, dim = look
    x, y = MARGIN + column * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
    width = len(text) * CELL_WIDTH
    if paper:
        out.append(f'<rect x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{CELL_HEIGHT}" fill="{paper}"/>')
    faint = ' opacity="0.65"' if dim else ""
    if set(text) <= set("█░"):
        shade = "" if text[0] == "█" else ' opacity="0.25"'
        out.append(
            f'<rect x="{number(x)}" y="{number(y + 3)}" width="{number(width)}" height="{CELL_HEIGHT - 6}" fill="{ink}"{shade}/>'
        )
    elif text[0] in ARMS:
        path = ""
        for place, letter in enumerate(text):
            middle_x, middle_y = x + (place + 0.5) * CELL_WIDTH, y + CELL_HEIGHT / 2
            for arm in ARMS[letter]:
                step_x, step_y = DIRECTIONS[arm]
                path += f"M{number(middle_x)} {number(middle_y)}"
                path += f"L{number(middle_x + step_x * CELL_WIDTH)} {number(middle_y + step_y * CELL_HEIGHT)}"
        if set(text) == {"─"}:
            path = f"M{number(x)} {number(y + CELL_HEIGHT / 2)}H{number(x + width)}"
        out.append(f'<path d="{path}" stroke="{ink}" fill="none" opacity="0.5"/>')
    elif text.strip():
        lead = len(text) - len(text.lstrip(" "))
        text = text.strip(" ")
        weight = ' font-weight="bold"' if bold else ""
        out.append(
            f'<text x="{number(x + lead * CELL_WIDTH)}" y="{number(y + CELL_HEIGHT * 0.75)}" '
            f'textLength="{number(len(text) * CELL_WIDTH)}" fill="{ink}"{weight}{faint}>{escape(text)}</text>'
        )


def kind(letter):
    """Cells of one kind may share a run."""
    return letter if letter in "█░─" else "box" if letter in ARMS else "text"


def svg(capture):
    """The picture of a captured screen."""
    lines = capture.rstrip("\n").split("\n")
    style, out, columns = Style(), [], 0
    for row, line in enumerate(lines):
        found = cells(line, style)
        columns = max(columns, len(found))
        begin = 0
        for column in range(1, len(found) + 1):
            same = column < len(found) and found[column][1] == found[begin][1]
            if same and kind(found[column][0]) == kind(found[begin][0]):
                continue
            draw_run(begin, row, "".join(letter for letter, _ in found[begin:column]), found[begin][1], out)
            begin = column
    width, height = number(2 * MARGIN + columns * CELL_WIDTH), number(2 * MARGIN + len(lines) * CELL_HEIGHT)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{FONT_SIZE}" '
        f'role="img" aria-label="The Plimsoll demo on a terminal" xml:space="preserve">'
    )
    paper = f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>'
    return "\n".join([head, paper, *out, "</svg>"]) + "\n"


def play(arguments):
    """The screen of the demo at a moment."""
    width, height = arguments.size.split("x")
    socket = f"plimsoll-demo-{os.getpid()}"

    def tmux(*words):
        return subprocess.run(["tmux", "-L", socket, *words], check=True, capture_output=True, text=True).stdout

    tmux("-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, f"{arguments.plimsoll} demo --speed {arguments.speed}")
    try:
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            clock = re.search(r"Plimsoll +(\d\d:\d\d)", tmux("capture-pane", "-p"))
            if clock and clock[1] >= arguments.at:
                break
            time.sleep(0.1)
        else:
            sys.exit(f"the demo never came to {arguments.at}")
        tmux("send-keys", "Space", *arguments.keys.split())
        time.sleep(1)
        return tmux("capture-pane", "-e", "-p", "-N")
    finally:
        tmux("kill-server")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", nargs="?", default="docs/demo.svg")
    parser.add_argument("--plimsoll", default="target/debug/plimsoll", help="the program")
    parser.add_argument("--at", default="02:25", help="moment of the story, MM:SS")
    parser.add_argument("--speed", default="8", help="virtual seconds per second")
    parser.add_argument("--size", default="118x34", help="columns and rows")
    parser.add_argument("--keys", default="", help="keys to press then, as tmux names them")
    parser.add_argument("--stdin", action="store_true", help="read a capture instead of playing the demo")
    arguments = parser.parse_args()
    capture = sys.stdin.read() if arguments.stdin else play(arguments)
    with open(arguments.out, "w", encoding="utf-8") as file:
        file.write(svg(capture))


if __name__ == "__main__":
    main()
