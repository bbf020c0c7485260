"""`python -m tests.e2e.icons`: the app's icons as pictures, from `public/icon.svg`, for what takes no SVG."""

import asyncio
from pathlib import Path
from typing import Final

from tests.e2e.browser import chromium

PUBLIC: Final = Path(__file__).parents[2] / "services" / "trunkline_web" / "public"
GROUND: Final = "#14532d"
"""The icon's own: where a system cuts the corners off, it goes to the edge and the drawing is smaller."""
ICONS: Final = {
    "icon-192.png": (192, 1.0, None),
    "icon-512.png": (512, 1.0, None),
    "icon-maskable-512.png": (512, 0.8, GROUND),
    "apple-touch-icon.png": (180, 0.9, GROUND),
}


async def main() -> None:
    drawing = (PUBLIC / "icon.svg").read_text()
    async with chromium() as browser:
        for name, (size, scale, ground) in ICONS.items():
            page = await browser.new_page(viewport={"width": size, "height": size})
            inner = f"width:{scale * 100}%;height:{scale * 100}%"
            outer = f"margin:0;display:grid;place-items:center;height:100vh;background:{ground or 'transparent'}"
            await page.set_content(f"<body style='{outer}'>{drawing.replace('<svg ', f'<svg style={inner!r} ', 1)}")
            await page.screenshot(path=PUBLIC / name, omit_background=True)
            await page.close()


if __name__ == "__main__":
    asyncio.run(main())
