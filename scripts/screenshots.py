"""Take pictures of the console, over a workspace in which agents have been at work: `tests/surfaces/http/console`.

    scripts/screenshots.py --to DIR [NAME…]     every view, or those named, 390 and 1280 pixels wide, dark and light
    scripts/screenshots.py --docs               the pictures of the documentation, and the recording of the README

It needs a Chromium, as the tests of the console do. The recording is an animated WebP, put together here from frames
that the browser encodes: only what changed since the frame before is in a frame.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import os
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TOP = Path(__file__).parent.parent
sys.path[:0] = [str(TOP / "tests"), str(TOP / "tests/surfaces/http/console")]

from console_server import ConsoleServer  # noqa: E402
from corner_shop import CornerShop, make_corner_shop  # noqa: E402
from views import SCHEMES, WIDTHS, View, open_view, views  # noqa: E402

from browsers import Browsing, chromium  # noqa: E402  found on the path of the lines above

PICTURES = TOP / "docs" / "pictures"
IN_DOCS = {"approve-armed": "console-approve.png", "file": "console-file.png", "now": "console-now.png"}
"""The views that the documentation shows, 1280 pixels wide and dark."""
QUALITY = 0.82
MINUTES = 12
"""How long the history of the pictures lasts."""
ENCODE = """
async ([before, after, quality]) => {
  const read = async (data) => createImageBitmap(await (await fetch(`data:image/png;base64,${data}`)).blob());
  const pixels = (bitmap) => {
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    return context.getImageData(0, 0, bitmap.width, bitmap.height).data;
  };
  const image = await read(after);
  let box = [0, 0, image.width, image.height];
  if (before) {
    const [old, now] = [new Uint32Array(pixels(await read(before)).buffer), new Uint32Array(pixels(image).buffer)];
    let [left, top, right, bottom] = [image.width, image.height, 0, 0];
    for (let y = 0; y < image.height; y += 1) {
      for (let x = 0; x < image.width; x += 1) {
        if (old[y * image.width + x] === now[y * image.width + x]) continue;
        left = Math.min(left, x); right = Math.max(right, x + 1);
        top = Math.min(top, y); bottom = Math.max(bottom, y + 1);
      }
    }
    if (right === 0) return null;
    box = [left & ~1, top & ~1, right, bottom];
  }
  const [left, top, right, bottom] = box;
  const canvas = new OffscreenCanvas(right - left, bottom - top);
  canvas.getContext("2d").drawImage(image, -left, -top);
  const blob = await canvas.convertToBlob({ type: "image/webp", quality });
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768));
  return { left, top, width: right - left, height: bottom - top, data: btoa(text) };
}
"""
"""Of two pictures, the part that differs, as WebP; null if they are the same."""


def main() -> None:
    """Take what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--to", type=Path, help="the directory to write to")
    parser.add_argument("--docs", action="store_true", help="write the pictures of the documentation")
    parser.add_argument("names", nargs="*", help="the views; without any, all of them")
    given = parser.parse_args()
    if chromium() is None:
        sys.exit("there is no Chromium: install Debian's chromium-headless-shell")
    if not given.docs and given.to is None:
        parser.error("say where to: --to DIR")
    os.environ["TZ"] = "UTC"
    with tempfile.TemporaryDirectory(prefix="haft-pictures-") as place:
        shop = _shop(Path(place))
        with ConsoleServer(shop, waits=True) as server, Browsing() as browsing:
            if given.docs:
                browsing.do(_for_docs, browsing, server, shop)
            else:
                given.to.mkdir(parents=True, exist_ok=True)
                browsing.do(_all, browsing, server, shop, given.to, given.names)


def _shop(place: Path) -> CornerShop:
    """A shop whose history took a quarter of an hour, as it does with real agents: while it is made, the clock is fast.
    It is made twice, because only then it is known how fast."""
    began = time.time()
    asyncio.run(make_corner_shop(place / "first"))
    took = time.time() - began
    real, began = time.time, time.time()
    time.time = lambda: began - MINUTES * 60 + took + (real() - began) * MINUTES * 60 / took
    try:
        return asyncio.run(make_corner_shop(place / "shop", expires_seconds=100_000))
    finally:
        time.time = real


def _all(browsing: Browsing, server: ConsoleServer, shop: CornerShop, to: Path, names: list[str]) -> None:
    cookies = server.cookies("mira.okafor")
    for view in views(shop.runs):
        if names and view.name not in names:
            continue
        for width in WIDTHS:
            for scheme in SCHEMES:
                path = to / f"{view.name}-{width}-{scheme}.png"
                print(_taken(browsing, server, view, width, scheme, cookies, path), path)


def _taken(
    browsing: Browsing, server: ConsoleServer, view: View, width: int, scheme: str, cookies: Any, path: Path
) -> int:
    context = browsing.context(width=width, height=WIDTHS[width], scheme=scheme, reduced_motion="reduce")
    if view.is_signed_in:
        context.add_cookies(cookies)
    page = context.new_page()
    status = open_view(page, server, view)
    page.wait_for_timeout(700)
    page.screenshot(path=path, full_page="armed" not in view.name)
    context.close()
    return status


def _for_docs(browsing: Browsing, server: ConsoleServer, shop: CornerShop) -> None:
    cookies = server.cookies("mira.okafor")
    for view in views(shop.runs):
        if view.name in IN_DOCS:
            _taken(browsing, server, view, 1280, "dark", cookies, PICTURES / IN_DOCS[view.name])
    (PICTURES / "console.webp").write_bytes(_recording(browsing, server, cookies))


def _recording(browsing: Browsing, server: ConsoleServer, cookies: Any) -> bytes:
    """An agent's trial run waits; a person reads its diff, approves, and undoes the run."""
    context = browsing.context(width=1180, height=760, scheme="dark", reduced_motion="reduce")
    context.add_cookies(cookies)
    page = context.new_page()
    frames: list[tuple[bytes, int]] = []

    def shot(milliseconds: int) -> None:
        frames.append((page.screenshot(), milliseconds))

    def press(keys: str, milliseconds: int) -> None:
        page.keyboard.press(keys)
        page.wait_for_timeout(350)
        shot(milliseconds)

    page.goto(server.address("now"))
    page.wait_for_timeout(500)
    shot(2600)
    page.locator(".asks .what", has_text="toFixed").click()
    page.wait_for_timeout(900)
    shot(3600)
    for _ in range(2):
        press("j", 700)
    press("x", 1800)  # Leaves the file out, and takes it in again.
    press("x", 900)
    press("a", 3000)
    page.keyboard.press("Enter")
    page.wait_for_timeout(1200)
    shot(2200)
    page.goto(server.address("runs"))
    page.wait_for_timeout(500)
    shot(1600)
    page.locator("a.row", has_text="toFixed").first.click()
    page.wait_for_timeout(900)
    shot(2200)
    press("u", 2800)
    page.locator("[data-undo-arm]").click()
    page.wait_for_timeout(900)
    shot(1600)
    page.locator("[data-undo-arm]").click()
    page.wait_for_timeout(1500)
    page.evaluate("scrollTo(0, 0)")
    shot(3600)
    context.close()
    return _webp(browsing, frames)


def _webp(browsing: Browsing, frames: list[tuple[bytes, int]]) -> bytes:
    """The frames as one animated WebP, which begins again for ever."""
    page = browsing.context().new_page()
    width, height = struct.unpack(">II", frames[0][0][16:24])
    chunks, before = [], None
    for png, milliseconds in frames:
        data = base64.b64encode(png).decode()
        part = page.evaluate(ENCODE, [before, data, QUALITY])
        before = data
        if part is None:
            continue
        place = (part["left"] // 2, part["top"] // 2, part["width"] - 1, part["height"] - 1, milliseconds)
        head = b"".join(number.to_bytes(3, "little") for number in place)
        chunks.append(_chunk(b"ANMF", head + b"\x02" + _image(base64.b64decode(part["data"]))))
    canvas = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = _chunk(b"VP8X", b"\x02\0\0\0" + canvas) + _chunk(b"ANIM", b"\0\0\0\0\0\0") + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body


def _image(webp: bytes) -> bytes:
    """The chunks of a still picture that hold the picture itself."""
    found, at = b"", 12
    while at < len(webp):
        size = struct.unpack("<I", webp[at + 4 : at + 8])[0]
        end = at + 8 + size + size % 2
        if webp[at : at + 4] in (b"VP8 ", b"VP8L", b"ALPH"):
            found += webp[at:end]
        at = end
    return found


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


if __name__ == "__main__":
    main()
