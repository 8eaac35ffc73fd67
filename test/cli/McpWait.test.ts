import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as McpServers from "../../src/cli/agent/McpServers.ts"
import { Screen, paintOf as paints } from "../../src/cli/terminal/Screen.ts"

/** A screen that keeps what the program writes. */
const kept = () => {
  const lines: Array<string> = []
  const err = (text: string) => Effect.sync(() => void lines.push(text))
  const screen = Screen.of({
    out: err,
    err,
    paint: paints(false),
    isInteractive: false,
    rows: () => 24,
    width: () => 80
  })
  return { lines, layer: Layer.succeed(Screen, screen) }
}

describe("an MCP server that says nothing", () => {
  it.effect("is named after 3 seconds, so that a person knows why no answer comes", () =>
    Effect.gen(function* () {
      const path = join(mkdtempSync(join(tmpdir(), "mcp-")), "mcp.json")
      const silent = { command: process.execPath, args: ["-e", "setTimeout(() => {}, 60_000)"] }
      writeFileSync(path, JSON.stringify({ mcpServers: { silent } }))
      const { layer, lines } = kept()
      const settings = { mcpConfig: Option.some(path), noMcp: false }
      const began = yield* Effect.forkChild(
        McpServers.notices.pipe(
          Effect.flatMap((say) => McpServers.open(settings, "m", say)),
          Effect.flatMap(({ settled }) => settled),
          Effect.scoped,
          Effect.provide(layer)
        )
      )
      // The file is read in real time.
      while (lines.length === 0) {
        yield* TestClock.adjust("1 second")
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      }
      assert.match(lines.join(""), /MCP server silent has not answered yet: .* at most 30 seconds \(--no-mcp/)
      yield* Fiber.interrupt(began)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
