import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { FetchHttpClient } from "effect/http"
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { serve, stream } from "../providers/server.ts"
import { bytes, hear, play, told } from "./session.ts"
import { openAi, vendors } from "./vendors.ts"

const megabyte = 1024 * 1024

describe.each(vendors)("$name", (vendor) => {
  it.live("F039: ten megabytes in one event are read exactly, in two seconds", () =>
    Effect.gen(function* () {
      const word = "Grüße, 世界. "
      const text = word.repeat(Math.ceil((10 * megabyte) / Buffer.byteLength(word)))
      const body = Buffer.from(bytes(vendor.answer({ text: [text] })))
      const server = yield* serve((response) => stream(response).end(body))
      const began = process.threadCpuUsage()
      const { events, reason } = yield* hear(vendor, server)
      const { system, user } = process.threadCpuUsage(began)
      assert.isUndefined(reason)
      const said = events.map((event) => (event._tag === "TextDelta" ? event.delta : "")).join("")
      // Not by `strictEqual`, which would show both.
      assert.isTrue(said === text)
      // Of this thread, in microseconds: others may keep the processor busy.
      assert.isBelow(system + user, 2_000_000)
    }).pipe(Effect.provide(FetchHttpClient.layer))
  )
})

it.live("F039: of ten megabytes in one event, five times that much is the most that is held", () =>
  Effect.gen(function* () {
    const body = bytes(openAi.answer({ text: ["A".repeat(10 * megabyte)] }))
    const server = yield* serve((response) => stream(response).end(body))
    // What the library itself takes, and fifty megabytes.
    const narrow = new Worker(new URL("narrow.ts", import.meta.url), {
      workerData: server.baseUrl,
      execArgv: ["--conditions=effect-agent-source"],
      resourceLimits: { maxOldGenerationSizeMb: 24 + 50 }
    })
    const [said] = yield* Effect.promise(() => once(narrow, "message"))
    assert.strictEqual(said, 10 * megabyte)
  })
)

it.live("F039: an event above the cap is a failure, and read no further", () =>
  Effect.gen(function* () {
    const part = Buffer.alloc(megabyte, "x")
    let sent = 0
    const server = yield* serve((response) => {
      stream(response).write("data: ")
      const more = () => {
        if (response.destroyed || sent === 200) return
        sent++
        if (response.write(part)) setImmediate(more)
        else response.once("drain", more)
      }
      more()
    })
    const { reason, text } = yield* play(openAi, server)
    assert.deepStrictEqual([told(reason), text], ["Protocol tooLarge", ""])
    assert.strictEqual(reason?.detail, "An event is too large")
    yield* server.idle
    assert.isBelow(sent, 100)
  }).pipe(Effect.provide(FetchHttpClient.layer))
)
