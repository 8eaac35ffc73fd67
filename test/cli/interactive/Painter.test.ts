import { assert, describe, it } from "@effect/vitest"
import headless from "@xterm/headless"
import { visibleWidth } from "@earendil-works/pi-tui"
import { Effect } from "effect"
import { Painter } from "../../../src/cli/session/Painter.ts"

const size = { columns: 40, rows: 10 }

describe("Painter", () => {
  it.effect(
    "leaves nothing of the live region behind a finished line with tabs, which are wider than they count",
    () =>
      Effect.promise(async () => {
        const emulator = new headless.Terminal({ cols: 40, rows: 10, allowProposedApi: true })
        let sent = ""
        const painter = new Painter((text) => {
          sent += text
        })
        const live = {
          lines: ["run (1 s)", "Working 0 s · Esc stops · Enter steers", "> "],
          cursor: { line: 2, column: 2 }
        }
        painter.draw([], live, size)
        const line = `\t${"x".repeat(37)}`
        assert.strictEqual(visibleWidth(line), size.columns)
        painter.draw([line], { lines: ["> "], cursor: { line: 0, column: 2 } }, size)
        await new Promise<void>((resolve) => emulator.write(sent, resolve))
        const rows = Array.from({ length: 4 }, (_, row) =>
          emulator.buffer.active.getLine(row)?.translateToString(true)
        )
        assert.deepStrictEqual(rows, [`        ${"x".repeat(32)}`, "xxxxx", "> ", ""])
      })
  )
})
