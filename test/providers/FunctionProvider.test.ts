import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema, Stream } from "effect"
import { Agent, Message, Provider, ProviderError, Tool, Usage } from "effect-agent"
import { FunctionProvider } from "effect-agent/providers"

const ask = (provider: Provider.Provider["Service"], content: string) =>
  Provider.complete({ model: "m", messages: [Message.user(content)], tools: [], options: {} }).pipe(
    Effect.provideService(Provider.Provider, provider)
  )
const run = (provider: Provider.Provider["Service"], tools: ReadonlyArray<Tool.Runnable> = []) =>
  Effect.flatMap(Agent.make({ model: "m", tools }), (agent) => agent.prompt("Go")).pipe(
    Effect.scoped,
    Effect.provideService(Provider.Provider, provider)
  )

describe("FunctionProvider (row 50)", () => {
  it.effect("answers whole, with a promise of a text", () =>
    Effect.gen(function* () {
      const echo = FunctionProvider.make({
        id: "echo",
        complete: async ({ messages }) => messages.map(Message.textOf).join()
      })
      const answer = yield* ask(echo, "Hello")
      assert.deepStrictEqual(
        [answer.content, answer.stopReason, answer.provider, answer.model],
        [[{ type: "text", text: "Hello" }], "stop", "echo", "m"]
      )
    })
  )

  it.effect("answers whole, with an effect of blocks, a reason and tokens", () =>
    Effect.gen(function* () {
      const provider = FunctionProvider.make({
        id: "whole",
        complete: () =>
          Effect.succeed({
            content: [{ type: "thinking", text: "Hm" }, "Half a sen"],
            stopReason: "length",
            usage: { input: 3, output: 2, total: 5 }
          })
      })
      const answer = yield* ask(provider, "Hello")
      assert.deepStrictEqual(
        answer.content.map((block) => ("text" in block ? `${block.type} ${block.text}` : "")),
        ["thinking Hm", "text Half a sen"]
      )
      assert.strictEqual(answer.stopReason, "length")
      assert.deepStrictEqual(answer.usage, Usage.make({ input: 3, output: 2, total: 5 }))
    })
  )

  it.effect("answers with an assistant message, such as one of another provider", () =>
    Effect.gen(function* () {
      const inner = FunctionProvider.make({ id: "inner", complete: async () => "Deep" })
      const outer = FunctionProvider.make({ id: "outer", complete: () => ask(inner, "Hello") })
      const answer = yield* ask(outer, "Hello")
      assert.deepStrictEqual([Message.textOf(answer), answer.provider], ["Deep", "outer"])
    })
  )

  it.effect("calls tools, and reads their results", () =>
    Effect.gen(function* () {
      const weather = Tool.make({
        name: "weather",
        description: "Returns the weather.",
        params: Schema.Struct({ city: Schema.String }),
        execute: ({ city }) => Effect.succeed(`Rain in ${city}`)
      })
      const provider = FunctionProvider.make({
        id: "calls",
        complete: async ({ messages }) => {
          const last = messages.at(-1)
          return last?.role === "toolResult"
            ? Message.textOf(last)
            : { content: [{ type: "toolCall", name: "weather", params: { city: "Oslo" } }] }
        }
      })
      assert.strictEqual((yield* run(provider, [weather])).text, "Rain in Oslo")
    })
  )

  it.effect("streams what a generator yields, as it comes, and takes the end from what it returns", () =>
    Effect.gen(function* () {
      const more = yield* Deferred.make<void>()
      const provider = FunctionProvider.make({
        id: "pieces",
        stream: async function* () {
          yield "He"
          await Effect.runPromise(Deferred.await(more))
          yield "llo"
          return { stopReason: "length", usage: { output: 2 } }
        }
      })
      const deltas: Array<string> = []
      const answer = yield* Stream.runForEach(
        provider.stream({ model: "m", messages: [], tools: [], options: {} }),
        (event) => {
          if (event._tag !== "TextDelta") return Effect.succeed(undefined)
          deltas.push(event.delta)
          return Deferred.succeed(more, undefined)
        }
      ).pipe(Effect.andThen(ask(provider, "Hello")))
      assert.deepStrictEqual(deltas, ["He", "llo"])
      assert.deepStrictEqual(
        [Message.textOf(answer), answer.stopReason, answer.usage?.output],
        ["Hello", "length", 2]
      )
    })
  )

  it.effect("what it throws is a typed failure by its status, or by its words", () =>
    Effect.gen(function* () {
      const reasons = yield* Effect.forEach(
        [
          Object.assign(new Error("429 slow down"), {
            status: 429,
            headers: new Headers({ "retry-after": "7" }),
            error: { message: "slow down" }
          }),
          Object.assign(new Error("fetch failed"), {
            cause: Object.assign(new Error(), { code: "ECONNREFUSED" })
          }),
          new Error("Invalid API key sk-abcdefghijklmnopqrstuvwxyz"),
          new ProviderError.ProviderError({
            provider: "mine",
            reason: new ProviderError.ContentPolicy({ detail: "no" })
          })
        ],
        (thrown) =>
          Effect.flip(
            ask(
              FunctionProvider.make({
                id: "bad",
                stream: async function* () {
                  yield* []
                  throw thrown
                }
              }),
              "Hello"
            )
          ),
        {}
      )
      assert.deepStrictEqual(
        reasons.map(({ provider, reason }) => `${provider} ${reason._tag}`),
        ["bad RateLimited", "bad Transport", "bad Unauthenticated", "mine ContentPolicy"]
      )
      const [limited, , unauthenticated] = reasons
      assert.include(JSON.stringify(limited), "7000")
      assert.notInclude(unauthenticated?.message, "sk-abc")
    })
  )

  it.effect("a synchronous throw is a typed failure too", () =>
    Effect.gen(function* () {
      const provider = FunctionProvider.make({
        id: "bad",
        complete: () => {
          throw new Error("no model is loaded")
        }
      })
      const error = yield* Effect.flip(ask(provider, "Hello"))
      assert.include(error.message, "no model is loaded")
    })
  )

  it.live("a cancel aborts the signal of the function", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<AbortSignal>()
      const hangs = FunctionProvider.make({
        id: "hangs",
        stream: async function* (_, signal) {
          yield "He"
          Effect.runSync(Deferred.succeed(begun, signal))
          await new Promise((_, reject) =>
            signal.addEventListener("abort", () => reject(new Error("aborted")))
          )
        }
      })
      const fiber = yield* Effect.forkChild(run(hangs))
      const signal = yield* Deferred.await(begun)
      assert.isFalse(signal.aborted)
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal.aborted)
    })
  )
})
