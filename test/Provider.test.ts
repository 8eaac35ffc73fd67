import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, Message, type ModelEvent, Provider, ProviderError } from "effect-agent"

const named = (id: string) =>
  Layer.succeed(Provider.Provider, Provider.Provider.of({ id, stream: () => Stream.empty }))
const shout = Provider.decorate((inner) => Effect.succeed({ ...inner, id: `${inner.id.toUpperCase()}!` }))
const idOf = Effect.map(Provider.Provider, ({ id }) => id)

describe("Provider", () => {
  it.effect("gets its notes on answers that began with later requests, and nobody else does", () =>
    Effect.gen(function* () {
      const notes: Array<ReadonlyArray<unknown>> = []
      const reason = new ProviderError.InvalidRequest({ detail: "no" })
      const provider = Provider.Provider.of({
        id: "noting",
        stream: (request) => {
          notes.push([...(request.notes ?? [])])
          const start: ModelEvent.ModelEvent = {
            _tag: "Start",
            provider: "noting",
            model: "m",
            protocol: "",
            note: `note ${notes.length}`
          }
          return notes.length === 2
            ? Stream.concat(
                Stream.make(start),
                Stream.fail(new ProviderError.ProviderError({ provider: "noting", reason }))
              )
            : Stream.make(start, { _tag: "Finish", stopReason: "stop" })
        }
      })
      const agent = yield* Effect.provideService(Agent.make({ model: "m" }), Provider.Provider, provider)
      const seen: Array<unknown> = []
      yield* agent.subscribe((event) => Effect.sync(() => void seen.push(event)))
      const first = yield* agent.prompt("One")
      yield* Effect.exit(agent.prompt("Two"))
      const third = yield* agent.prompt("Three")
      const [, answer] = first.newMessages
      const [, failed] = agent.state.getUnsafe().messages.filter(({ role }) => role === "assistant")
      const known = [answer?.id, "note 1"]
      assert.deepStrictEqual(notes, [[], [known], [known, [failed?.id, "note 2"]]])
      assert.notInclude(JSON.stringify([seen, first, third, agent.state.getUnsafe()]), "note 1")
    }).pipe(Effect.scoped)
  )

  describe("complete (row 50)", () => {
    const answering = (...events: ReadonlyArray<ModelEvent.ModelEvent>) =>
      Provider.complete({ model: "m", messages: [Message.user("Hi")], tools: [], options: {} }).pipe(
        Effect.provideService(
          Provider.Provider,
          Provider.Provider.of({ id: "events", stream: () => Stream.fromIterable(events) })
        )
      )
    const start = { _tag: "Start", provider: "events", model: "m-1", protocol: "p" } as const
    const hello = { _tag: "TextDelta", contentIndex: 0, delta: "Hello" } as const

    it.effect("returns the whole answer, and what was retracted is not in it", () =>
      Effect.gen(function* () {
        const answer = yield* answering(start, hello, { _tag: "Retracted" }, start, hello, {
          _tag: "Finish",
          stopReason: "stop"
        })
        assert.deepStrictEqual(
          [answer.content, answer.model, answer.protocol, answer.stopReason],
          [[{ type: "text", text: "Hello" }], "m-1", "p", "stop"]
        )
      })
    )

    it.effect("fails for an answer that was cut, and for one that ends with an error", () =>
      Effect.gen(function* () {
        const errors = yield* Effect.all([
          Effect.flip(answering(start, hello)),
          Effect.flip(answering(start, hello, { _tag: "Finish", stopReason: "error" }))
        ])
        assert.deepStrictEqual(
          errors.map(({ provider, reason }) => `${provider} ${reason._tag}`),
          ["events StreamTruncated", "events ServerError"]
        )
      })
    )
  })

  describe("decorate", () => {
    it.effect("two providers with the same decorator in one app each keep their own (row 254)", () =>
      Effect.gen(function* () {
        const ids = yield* Effect.all([
          Effect.provide(idOf, shout(named("a"))),
          Effect.provide(idOf, shout(shout(named("b"))))
        ])
        assert.deepStrictEqual(ids, ["A!", "B!!"])
      })
    )
  })

  describe("router", () => {
    const asked: Array<string> = []
    const echo = (id: string) =>
      Provider.Provider.of({
        id,
        stream: (request) => {
          asked.push(`${id} ${request.model}`)
          return Stream.empty
        }
      })
    const router = Provider.router({ openai: echo("openai"), anthropic: echo("anthropic") })
    const ask = (model: string) =>
      Stream.runDrain(router.stream({ model, messages: [Message.user("hi")], tools: [], options: {} }))

    it.effect("sends a model to the provider its prefix names, without the prefix", () =>
      Effect.gen(function* () {
        yield* ask("anthropic/claude/x")
        assert.deepStrictEqual(asked, ["anthropic claude/x"])
      })
    )

    it.effect("refuses any other prefix, and names those it has", () =>
      Effect.gen(function* () {
        for (const model of ["mistral/x", "gpt", "toString/x"]) {
          const error = yield* Effect.flip(ask(model))
          assert.strictEqual(error.reason._tag, "ModelNotSupported")
          assert.include(error.message, "openai, anthropic")
        }
      })
    )
  })
})
