import { assert, describe, it } from "@effect/vitest"
import { type JSONRPCMessage, SdkErrorCode, SdkHttpError, type Transport } from "@modelcontextprotocol/client"
import { Effect, Fiber, Schedule, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Tool } from "effect-agent"
import { McpClient } from "effect-agent/mcp"

/** A server in this process, which counts the connections that clients try, and the calls that it gets. */
const server = () => {
  let attempts = 0
  let isUp = true
  let hung: Transport | undefined
  let forgotten: Transport | undefined
  let open: Transport | undefined
  const called: Array<JSONRPCMessage> = []
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
        : { content: [{ type: "text", text: "echo" }] }
  const transport = (): Transport => {
    attempts++
    const made: Transport = {
      start: () => {
        if (!isUp) return Promise.reject(new Error("nothing listens"))
        open = made
        return Promise.resolve()
      },
      send: (message: JSONRPCMessage) => {
        if (made === forgotten)
          return Promise.reject(
            new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, "no such session", { status: 404 })
          )
        if (!("method" in message) || !("id" in message)) return Promise.resolve()
        if (message.method === "tools/call") called.push(message)
        if (made !== hung)
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
    calls: () => called.length,
    /** Has the connection answer nothing from now on. */
    hang: () => {
      hung = open
    },
    /** Says of each request of the connection that there is no such session. */
    forget: () => {
      forgotten = open
    },
    /** Reports progress of the last call. */
    report: () => {
      const call = called.at(-1)
      const token = call !== undefined && "params" in call ? call.params?._meta?.progressToken : undefined
      assert.isDefined(token)
      open?.onmessage?.({
        jsonrpc: "2.0",
        method: "notifications/progress",
        params: { progressToken: token, progress: 1 }
      })
    },
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

/** A call of the tool, in the run of an agent. */
const call = (client: McpClient.McpClient) =>
  client.callTool("echo", {}, { timeout: "10 seconds" }).pipe(
    Effect.map(({ content }) =>
      content.map((block) => (block.type === "text" ? block.text : block.type)).join("")
    ),
    Effect.catch(({ reason }) => Effect.succeed(reason)),
    Effect.provideService(Tool.ToolContext, {
      toolCallId: "call_1",
      idempotencyKey: "call_1",
      runId: "run_1",
      turn: 1,
      progress: () => Effect.void
    }),
    Effect.forkChild({ startImmediately: true })
  )

describe("a call", () => {
  it.effect("waits while its server is connected again, at most 10 seconds", () =>
    Effect.gen(function* () {
      const { address, calls, comeBack, leave } = server()
      const client = yield* McpClient.connect("here", address)
      leave()
      yield* settled
      const late = yield* call(client)
      yield* pass(1_000)
      comeBack()
      yield* pass(2_000)
      assert.strictEqual(yield* Fiber.join(late), "echo")
      assert.strictEqual(calls(), 1)
      leave()
      yield* settled
      const never = yield* call(client)
      yield* pass(10_000)
      assert.strictEqual(yield* Fiber.join(never), "unreachable")
    }).pipe(Effect.scoped)
  )

  it.effect("that a server proves not to have got is sent again, once", () =>
    Effect.gen(function* () {
      const { address, calls, forget } = server()
      const client = yield* McpClient.connect("here", address)
      forget()
      const sent = yield* call(client)
      yield* settled
      yield* pass(200)
      assert.strictEqual(yield* Fiber.join(sent), "echo")
      assert.strictEqual(calls(), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("that reports progress has its time again", () =>
    Effect.gen(function* () {
      const { address, hang, report } = server()
      const client = yield* McpClient.connect("here", address)
      hang()
      const long = yield* call(client)
      yield* settled
      for (let time = 0; time < 5; time++) {
        yield* pass(9_000)
        report()
        yield* settled
      }
      assert.isUndefined(long.pollUnsafe())
      yield* pass(10_000)
      assert.strictEqual(yield* Fiber.join(long), "timeout")
    }).pipe(Effect.scoped)
  )

  it.live("that is not answered has its server asked, and connected again if it does not live", () =>
    Effect.gen(function* () {
      const { address, attempts, hang } = server()
      const client = yield* McpClient.connect("here", address)
      hang()
      const lost = yield* Effect.flip(
        Effect.provideService(client.callTool("echo", {}, { timeout: "50 millis" }), Tool.ToolContext, {
          toolCallId: "call_1",
          idempotencyKey: "call_1",
          runId: "run_1",
          turn: 1,
          progress: () => Effect.void
        })
      )
      assert.strictEqual(lost.reason, "timeout")
      yield* client.states.pipe(
        Stream.filter(({ isConnected }) => isConnected && attempts() === 2),
        Stream.runHead
      )
      assert.strictEqual(yield* Fiber.join(yield* call(client)), "echo")
    }).pipe(Effect.scoped, Effect.timeout("15 seconds"))
  )
})
