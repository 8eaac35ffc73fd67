import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { AgentEvent, Message } from "effect-agent"
import { build } from "esbuild"
import { execFileSync } from "node:child_process"
import { createServer } from "node:http"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { chromium } from "playwright-core"
import { eventsOf } from "../server/host.ts"
import { token } from "../server/http.ts"
import * as Scripted from "../ui/scripted.ts"
import { host } from "./client.ts"
import type { Shown } from "./page.ts"

/** The most kB of a page with the client, compressed by gzip. */
const maxSize = 105

const bundle = Effect.promise(async () => {
  const { metafile, outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "page.ts")],
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: "iife",
    platform: "browser",
    conditions: ["effect-agent-source"]
  })
  const [file] = outputFiles
  assert.isDefined(file)
  return { text: file.text, inputs: Object.keys(metafile.inputs) }
})

const find = (name: string): string | undefined => {
  try {
    return execFileSync("which", [name], { encoding: "utf8" }).trim()
  } catch {
    return undefined
  }
}
const browser = find("chromium") ?? find("chromium-browser") ?? find("google-chrome")
if (browser === undefined) console.log("No chromium: the test of the client in a browser is skipped")

/** An empty page with the script, at an origin of its own. */
const pageOf = (script: string) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ origin: string; close: () => void }>((resolve) => {
          const server = createServer((request, response) => {
            const isScript = request.url === "/page.js"
            response.setHeader("content-type", isScript ? "text/javascript" : "text/html")
            response.end(isScript ? script : '<!doctype html><script src="/page.js"></script>')
          })
          server.listen(0, "127.0.0.1", () => {
            const address = server.address()
            const port = typeof address === "object" && address !== null ? address.port : 0
            resolve({ origin: `http://127.0.0.1:${port}`, close: () => server.close() })
          })
        })
    ),
    ({ close }) => Effect.sync(close)
  )

describe("the client in a browser", { timeout: 60_000 }, () => {
  it.live("imports nothing of Node, and is small", () =>
    Effect.gen(function* () {
      const { inputs, text } = yield* bundle
      assert.deepStrictEqual(
        inputs.filter((path) => path.startsWith("node:") || path.includes("platform-node")),
        []
      )
      assert.isBelow(gzipSync(text).length / 1000, maxSize)
    })
  )

  it.live.skipIf(browser === undefined)("talks to the server from a page of another origin", () =>
    Effect.gen(function* () {
      const { text } = yield* bundle
      const { origin } = yield* pageOf(text)
      const { context, url } = yield* host({
        provider: Scripted.provider(),
        policy: Scripted.policy("wait"),
        tools: Scripted.tools,
        server: { origins: [origin] }
      })
      const chrome = yield* Effect.acquireRelease(
        Effect.promise(() =>
          chromium.launch({ executablePath: browser ?? "", args: ["--no-sandbox", "--disable-gpu"] })
        ),
        (chrome) => Effect.promise(() => chrome.close())
      )
      const shown = yield* Effect.promise(async () => {
        const page = await chrome.newPage()
        await page.goto(origin)
        return page.evaluate<Shown>(`session(${JSON.stringify(url)}, ${JSON.stringify(token)})`)
      })
      assert.isAbove(shown.visits, 10)
      assert.strictEqual(shown.refused, "RunNotFound")
      for (const [at, position] of shown.positions.entries())
        assert.isAbove(position, shown.positions[at - 1] ?? 0)
      const log = yield* Effect.provideContext(eventsOf(shown.runId), context)
      const lasting = (tag: string) => tag !== "MessageDelta"
      assert.deepStrictEqual(shown.tags.filter(lasting), log.map(({ event }) => event._tag).filter(lasting))
      const folded = log.map(({ event }) => event).reduce(AgentEvent.fold, AgentEvent.initial())
      assert.deepStrictEqual(shown.texts, folded.messages.map(Message.textOf))
      assert.deepStrictEqual(shown.state, shown.texts)
    })
  )
})
