"""The SVG in a real browser: text stays in its box, and nothing is complained about."""

import html
import json
import re
import subprocess
from pathlib import Path

import pytest

import cutwater as cw
from cutwater.flow.drawing import svg

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("any_name")]

PINNED = sorted((Path(__file__).parents[2] / "snapshots" / "drawing").glob("*.svg"))

# Compares the text of every group with the group's rectangle, or else with the page.
SCRIPT = """
const found = [];
const inside = (text, ground, room) =>
  text.x >= ground.x + room && text.x + text.width <= ground.x + ground.width - room &&
  text.y >= ground.y && text.y + text.height <= ground.y + ground.height;
for (const picture of document.querySelectorAll('svg')) {
  const page = picture.querySelector('.cw-page').getBoundingClientRect();
  for (const text of picture.querySelectorAll('text')) {
    const box = text.parentNode.querySelector(':scope > rect:not(.cw-page)');
    const isKey = text.parentNode.classList.contains('cw-key');
    const ground = box && !isKey ? box.getBoundingClientRect() : page;
    if (!inside(text.getBoundingClientRect(), ground, 4))
      found.push(`${text.textContent} leaves its ${box && !isKey ? 'box' : 'page'}`);
  }
  for (const node of picture.querySelectorAll('.cw-node')) {
    const sign = node.querySelector('.cw-sign')?.getBoundingClientRect();
    const verb = node.querySelector('.cw-verb').getBoundingClientRect();
    if (sign && verb.right > sign.left) found.push(`${node.textContent} covers its sign`);
  }
  const keys = [...picture.querySelectorAll('.cw-key')].map(key => key.getBoundingClientRect());
  keys.forEach((key, i) => keys.slice(i + 1).forEach(other => {
    if (key.right + 4 > other.left && other.right > key.left && key.bottom > other.top)
      found.push('two entries of the legend meet');
  }));
}
document.getElementById('result').textContent = JSON.stringify({
  found, texts: document.querySelectorAll('text').length});
"""


@pytest.fixture
def dump(chromium, tmp_path):
    """Load a page as Chromium sees it; return its document and the console messages."""

    def dump(page: Path) -> tuple[str, list[str]]:
        flags = "--headless --no-sandbox --disable-gpu --disable-background-networking"
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        command = [chromium, *flags.split(), profile, "--enable-logging=stderr", "--dump-dom"]
        ran = subprocess.run(
            [*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=True
        )
        messages = [line for line in ran.stderr.splitlines() if "CONSOLE" in line]
        return ran.stdout, messages

    return dump


@pytest.fixture
def measure(dump, tmp_path):
    """What leaves its box in some pictures."""

    def measure(pictures: list[str]) -> list[str]:
        page = tmp_path / "pictures.html"
        body = "\n".join(pictures) + f'<pre id="result"></pre><script>{SCRIPT}</script>'
        page.write_text(f'<!doctype html><meta charset="utf-8"><body>{body}', encoding="utf-8")
        document, complaints = dump(page)
        assert complaints == []
        text = re.search(r'<pre id="result">(.*?)</pre>', document, re.DOTALL)
        result = json.loads(html.unescape(text[1]))
        assert result["texts"] == sum(picture.count("<text") for picture in pictures)
        return result["found"]

    return measure


NAMES = [
    "i" * 60,
    "W" * 60,
    "running_average_of_all_readings_by_sensor",
    "the quick brown fox jumps over the lazy dog",
    "THE QUICK BROWN FOX JUMPS OVER",
    "0123456789 0123456789",
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "ÄÖÜß éèê ñ Ærøskøbing Łódź",
    "Ένα δύο τρία τέσσερα",
    "Съешь ещё этих булок",
    "温度センサーの読み取り値を平均する",
    "🚀🔥 🎉 👩‍👩‍👧",
    "مرحبا بالعالم שלום",
    "﷽ ∭ ⟿ ꧅ 𒐫",
    "x",
]


def long_names() -> cw.Flow:
    """A chain and a fan of steps with all sorts of names, alone and many in one."""
    flow = cw.Flow(" ".join(NAMES))
    source = flow.source("readings", dict[str, list[tuple[int, float]]])
    for i, name in enumerate(NAMES):
        branch = source.map(len, name=name).key_by(name, name=f"{i}{name}")
        branch.batch(name=f"{name} {i}").sink(name)
    return flow


def test_no_text_leaves_its_box(measure):
    pictures = [picture.read_text(encoding="utf-8") for picture in PINNED]
    assert len(pictures) == 3
    pictures.append(svg(long_names()))
    pictures.append(svg(long_names(), title="W" * 400))
    assert measure(pictures) == []


def test_text_that_leaves_its_box_is_found(measure):
    picture = PINNED[0].read_text(encoding="utf-8")
    longer = picture.replace(">running_average<", ">running_average_of_all_readings<")
    assert longer != picture
    assert measure([longer]) == ["running_average_of_all_readings leaves its box"]


@pytest.mark.parametrize("picture", PINNED, ids=lambda path: path.stem)
def test_a_picture_alone_is_a_document(dump, picture):
    document, complaints = dump(picture)
    assert complaints == []
    assert "parsererror" not in document
    assert document.count('class="cw-node"') == picture.read_text().count('class="cw-node"')
