import { assert, describe, it } from "@effect/vitest"
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client"
import { Effect, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { McpClient } from "effect-agent/mcp"

/** A server in this process, which counts the connections that clients try. */
const server = () => {
  let attempts = 0
  let isUp = true
  let open: Transport | undefined
  const tools = [{ name: "echo", inputSchema: { type: "object" } }]
  const resultOf = (method: string) =>
    method === "initialize"
      ? {
          protocolVersion: "2025-06-18",
          capabilities: { tools: {} },
          serverInfo: { name: "here", version: "1.0.0" }
        }
      : method === "tools/list"
        ? { tools }
        : {}
  const transport = (): Transport => {
    attempts++
    const made: Transport = {
      start: () => {
        if (!isUp) return Promise.reject(new Error("nothing listens"))
        open = made
        return Promise.resolve()
      },
      send: (message: JSONRPCMessage) => {
        if ("method" in message && "id" in message)
          made.onmessage?.({ jsonrpc: "2.0", id: message.id, result: resultOf(message.method) })
        return Promise.resolve()
      },
      close: () => Promise.resolve()
    }
    return made
  }
  return {
    address: { transport },
    attempts: () => attempts,
    leave: () => {
      isUp = false
      open?.onclose?.()
    },
    comeBack: () => {
      isUp = true
    }
  }
}

/** Lets promises and fibers run on, until only the clock can change something. */
const settled = Effect.promise(async () => {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
})

const pass = (time: number) => Effect.andThen(TestClock.adjust(time), settled)

describe("a connection that is lost", () => {
  it.effect("is made again after pauses that double, up to 5 seconds", () =>
    Effect.gen(function* () {
      const { address, attempts, comeBack, leave } = server()
      const client = yield* McpClient.connect("here", address)
      assert.deepStrictEqual(
        (yield* client.state).tools.map(({ name }) => name),
        ["echo"]
      )
      leave()
      yield* settled
      for (const pause of [200, 400, 800, 1_600, 3_200, 5_000, 5_000]) {
        const before = attempts()
        assert.deepInclude(yield* client.state, { isConnected: false })
        assert.lengthOf((yield* client.state).tools, 1)
        yield* pass(pause - 1)
        assert.strictEqual(attempts(), before, `before ${pause}`)
        yield* pass(1)
        assert.strictEqual(attempts(), before + 1, `after ${pause}`)
      }
      comeBack()
      yield* pass(5_000)
      assert.isTrue((yield* client.state).isConnected)
    }).pipe(Effect.scoped)
  )

  it.effect("begins with the first pause again once it held for 30 seconds", () =>
    Effect.gen(function* () {
      const { address, attempts, comeBack, leave } = server()
      const client = yield* McpClient.connect("here", address)
      leave()
      yield* settled
      for (const pause of [200, 400, 800]) yield* pass(pause)
      comeBack()
      yield* pass(1_600)
      assert.isTrue((yield* client.state).isConnected)
      yield* pass(31_000)
      const before = attempts()
      leave()
      yield* settled
      // The first attempt comes at once.
      assert.strictEqual(attempts(), before + 1)
      yield* pass(199)
      assert.strictEqual(attempts(), before + 1)
      yield* pass(1)
      assert.strictEqual(attempts(), before + 2)
    }).pipe(Effect.scoped)
  )

  it.effect("is made again as a schedule of the application says, and not after the scope", () =>
    Effect.gen(function* () {
      const { address, attempts, leave } = server()
      yield* Effect.gen(function* () {
        yield* McpClient.connect("here", address, { reconnect: Schedule.spaced("1 minute") })
        leave()
        yield* settled
        yield* pass(59_999)
        assert.strictEqual(attempts(), 1)
        yield* pass(1)
        assert.strictEqual(attempts(), 2)
      }).pipe(Effect.scoped)
      yield* pass(3_600_000)
      assert.strictEqual(attempts(), 2)
    })
  )
})
