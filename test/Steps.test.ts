import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Fiber, Layer, Schema, Struct } from "effect"
import { HookManager, Loop, Message, Provider, Tool, ToolRegistry, Transcript } from "effect-agent"
import { Steps } from "effect-agent/steps"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { echo, failing, resultTexts, texts } from "./behaviour/play.ts"

const options = { model: "m" }
const calling = (...ids: ReadonlyArray<string>) =>
  Message.assistant(
    ids.map((id) => ({
      type: "toolCall" as const,
      id,
      name: "echo",
      rawArguments: '{"n":1}',
      params: { n: 1 }
    })),
    { stopReason: "toolUse" }
  )
const resultOf = (toolCallId: string, text = toolCallId): Steps.CallResult => ({
  toolCallId,
  content: [Message.text(text)]
})
const called = (...ids: ReadonlyArray<string>) =>
  Effect.flatMap(Steps.start("hi", options), (state) => Steps.answer(state, calling(...ids)))
const detailOf = <A>(step: Effect.Effect<A, Steps.InvalidStep | Loop.InvalidInput>) =>
  Effect.map(Effect.flip(step), ({ message }) => message)

const json = Schema.fromJsonString(Schema.toCodecJson(Steps.State))
/** Writes a state and reads it back, as another process would. */
const stored = (state: Steps.State) =>
  Effect.flatMap(Schema.encodeEffect(json)(state), Schema.decodeEffect(json)).pipe(Effect.orDie)

/** Takes all steps with the provider and the tools around, and a snapshot before each. */
const drive = Effect.fnUntraced(function* (begun: Steps.State, isReversed = false) {
  const { definitions } = yield* ToolRegistry.ToolRegistry
  let state = begun
  while (true) {
    state = yield* stored(state)
    const step = Steps.next(state, yield* definitions)
    if (step._tag === "Done") return { messages: state.messages, status: step.status }
    if (step._tag === "CallModel") {
      state = yield* Steps.answer(state, yield* Provider.complete(step.request))
      continue
    }
    const [call] = isReversed ? step.calls.slice(-1) : []
    const calls = call === undefined ? step.calls : [call]
    state = yield* Steps.results(state, yield* Effect.forEach(calls, (one) => Steps.call(state, one)))
  }
})

const Kind = Schema.Literals(["echo", "ECHO", "fails", "dies", "nope", "malformed", "wrong", "ends", "twin"])
const Plan = Schema.Struct({
  turns: Schema.Array(
    Schema.Struct({
      kinds: Schema.Array(Kind),
      stopReason: Schema.Literals(["toolUse", "toolUse", "length"])
    })
  ),
  isReversed: Schema.Boolean,
  caseInsensitiveTools: Schema.Boolean,
  invalidJsonArguments: Schema.Literals(["error", "emptyObject"]),
  maxTurns: Schema.Literals([1, 2, 50])
})

const stepOf = (kind: typeof Kind.Type) => {
  if (kind === "malformed") return Step.rawToolCall("echo", ['{"n":'])
  if (kind === "twin") return Step.toolCall("echo", { n: 2 }, { id: "twin" })
  return Step.toolCall(kind, { n: kind === "wrong" ? "one" : 1 })
}

const tools = [
  echo,
  failing("fails"),
  Tool.make({ name: "dies", description: "Dies.", execute: () => Effect.die("broken") }),
  Tool.make({
    name: "ends",
    description: "Ends the run.",
    execute: () => Effect.succeed(Tool.output("over", { terminate: true }))
  })
]

/** Messages without what differs from run to run. */
const bare = (messages: ReadonlyArray<Message.Message>) =>
  messages.map((message) => Struct.omit(JSON.parse(JSON.stringify(message)), ["id", "timestamp"]))

describe("a loop by steps", () => {
  it.effect(
    "gives the transcript and the requests of Loop.run, with a snapshot before each step (row 95)",
    () =>
      Effect.gen(function* () {
        const agrees = ({ isReversed, maxTurns, turns, ...given }: typeof Plan.Type) =>
          Effect.gen(function* () {
            const script = turns.map(({ kinds, stopReason }) =>
              ScriptedProvider.turn(
                Step.start,
                Step.text("So:"),
                ...kinds.map(stepOf),
                Step.finish(stopReason)
              )
            )
            const all = [...script, ScriptedProvider.text("done")]
            const one = yield* ScriptedProvider.make(all)
            const other = yield* ScriptedProvider.make(all)
            const ofRun = {
              ...options,
              ...given,
              system: "Be brief.",
              limits: { maxTurns, onMaxTurns: "stop", maxIdenticalToolCalls: Infinity }
            } as const
            const run = yield* Loop.run("hi", { messages: [] }, ofRun).pipe(
              Effect.provide(Layer.mergeAll(one.layer, ToolRegistry.layer(...tools), HookManager.layer()))
            )
            const driven = yield* Steps.start("hi", {
              ...options,
              ...given,
              maxTurns,
              system: "Be brief."
            }).pipe(
              Effect.flatMap((state) => drive(state, isReversed)),
              Effect.provide(Layer.mergeAll(other.layer, ToolRegistry.layer(...tools)))
            )
            assert.deepStrictEqual(bare(driven.messages), bare(run.newMessages))
            assert.strictEqual(driven.status, run.status)
            assert.deepStrictEqual(Transcript.violations(driven.messages), [])
            const asked = (requests: ReadonlyArray<Provider.ModelRequest>) =>
              requests.map((request) => ({
                ...Struct.omit(request, ["notes"]),
                messages: bare(request.messages)
              }))
            assert.deepStrictEqual(asked(yield* other.requests), asked(yield* one.requests))
          }).pipe(Effect.as(true))
        const result = yield* Arbitrary.checkEffect(Arbitrary.schema(Plan), agrees, {
          seed: 1,
          runs: 100,
          size: 5
        })
        assert.strictEqual(Arbitrary.formatCheckFailure(result), undefined)
      })
  )

  it.effect("names the model call, the tool calls and the end (row 95)", () =>
    Effect.gen(function* () {
      const definition = { name: "echo", description: "Echoes.", parameters: { type: "object" } }
      const started = yield* Steps.start("hi", { ...options, system: "Be brief." })
      const first = Steps.next(started, [definition])
      if (first._tag !== "CallModel") return assert.fail(first._tag)
      assert.deepInclude(first.request, { model: "m", system: "Be brief.", tools: [definition], options: {} })
      assert.deepStrictEqual(texts(first.request.messages), ["hi"])
      const asked = yield* Steps.answer(started, calling("a", "b"))
      const second = Steps.next(asked)
      assert.deepStrictEqual(second._tag === "CallTools" && second.calls.map(({ id }) => id), ["a", "b"])
      const half = yield* stored(yield* Steps.results(asked, [resultOf("b")]))
      const third = Steps.next(half)
      assert.deepStrictEqual(third._tag === "CallTools" && third.calls.map(({ id }) => id), ["a"])
      const whole = yield* Steps.results(half, [resultOf("a")])
      assert.deepStrictEqual(resultTexts(whole.messages), ["a", "b"])
      assert.strictEqual(Steps.next(whole)._tag, "CallModel")
      const done = yield* Steps.answer(whole, Message.assistant("done"))
      assert.deepStrictEqual(Steps.next(done), { _tag: "Done", status: "completed" })
      const again = yield* Steps.prompt(done, "And now?")
      assert.strictEqual(again.turns, 0)
      assert.strictEqual(Steps.next(again)._tag, "CallModel")
    })
  )

  it.effect("refuses an answer to nothing, and one before the results (row 95)", () =>
    Effect.gen(function* () {
      const state = yield* called("a", "b")
      assert.strictEqual(
        yield* detailOf(Steps.answer(state, Message.assistant("done"))),
        "Cannot take an answer: the calls a, b have no result"
      )
      const whole = yield* Steps.results(state, [resultOf("a"), resultOf("b")])
      const done = yield* Steps.answer(whole, Message.assistant("done"))
      assert.strictEqual(
        yield* detailOf(Steps.answer(done, Message.assistant("more"))),
        "Cannot take an answer: the loop is done (completed)"
      )
      const [, answered] = whole.messages
      if (answered?.role !== "assistant") return assert.fail()
      assert.strictEqual(
        yield* detailOf(Steps.answer(whole, answered)),
        `Cannot take an answer: the transcript has the message ${answered.id}`
      )
      const wrong = yield* detailOf(Steps.answer(whole, JSON.parse('{"role":"assistant"}')))
      assert.match(wrong, /^Invalid messages: /)
    })
  )

  it.effect("refuses results of unknown and answered calls, and a prompt before the results (row 95)", () =>
    Effect.gen(function* () {
      const state = yield* called("a", "b")
      const half = yield* Steps.results(state, [resultOf("a")])
      assert.deepStrictEqual(
        [
          yield* detailOf(Steps.results(state, [resultOf("c")])),
          yield* detailOf(Steps.results(half, [resultOf("a")])),
          yield* detailOf(Steps.results(state, [resultOf("b"), resultOf("b")])),
          yield* detailOf(Steps.prompt(half, "Wait"))
        ],
        [
          "Cannot take a result: no call c is open",
          "Cannot take a result: the call a has a result",
          "Cannot take a result: the call b has a result",
          "Cannot take a prompt: the call b has no result"
        ]
      )
      assert.strictEqual(yield* Steps.results(half, []), half)
      const started = yield* Steps.start("hi", options)
      assert.strictEqual(
        yield* detailOf(Steps.results(started, [resultOf("a")])),
        "Cannot take a result: no call a is open"
      )
    })
  )

  it.effect("refuses results that are none with a typed error, since they come from elsewhere (row 95)", () =>
    Effect.gen(function* () {
      const state = yield* called("a")
      const refusal = (result: string) => detailOf(Steps.results(state, JSON.parse(result)))
      for (const [given, path] of [
        ['[{"toolCallId":"a"}]', '[0]["content"]'],
        ['[{"toolCallId":"a","content":"4 °C"}]', '[0]["content"]'],
        ['[{"toolCallId":"a","content":[{"type":"sound"}]}]', '[0]["content"][0]'],
        ['[{"toolCallId":"a","content":[],"outcome":"fine"}]', '[0]["outcome"]'],
        ["[null]", "[0]"],
        ["{}", ""]
      ] as const) {
        const detail = yield* refusal(given)
        assert.isTrue(detail.startsWith("Cannot take a result: "), detail)
        assert.include(detail, path)
      }
      const unset: object = { ...resultOf("a"), details: undefined, isError: undefined }
      const taken = yield* Steps.results(state, [Object.assign(resultOf("a"), unset)])
      assert.deepStrictEqual(resultTexts(taken.messages), ["a"])
    })
  )

  it.effect("reads the arguments of a call that has them as text only (row 95)", () =>
    Effect.gen(function* () {
      const call = { type: "toolCall", id: "a", name: "echo" } as const
      const paramsOf = (rawArguments: string) =>
        Steps.start("hi", options).pipe(
          Effect.flatMap((state) =>
            Steps.answer(state, Message.assistant([{ ...call, rawArguments }], { stopReason: "toolUse" }))
          ),
          Effect.map((state) => {
            const step = Steps.next(state)
            return step._tag === "CallTools" ? step.calls.map(({ params }) => params) : []
          })
        )
      assert.deepStrictEqual(yield* paramsOf('{"n":1}'), [{ n: 1 }])
      assert.deepStrictEqual(yield* paramsOf(""), [{}])
      assert.deepStrictEqual(yield* paramsOf('{"n":'), [undefined])
    })
  )

  it.effect("refuses options that it does not have (row 95)", () =>
    Effect.gen(function* () {
      const wrong = { model: "m", toolConcurrency: 2 }
      assert.match(
        yield* detailOf(Steps.start("hi", wrong)),
        /^Invalid options: toolConcurrency is not an option/
      )
      assert.match(yield* detailOf(Steps.start("hi", JSON.parse("{}"))), /^Invalid options: model is missing/)
    })
  )

  it.effect("takes another answer after one that failed or was cancelled (row 95)", () =>
    Effect.gen(function* () {
      const started = yield* Steps.start("hi", { ...options, maxTurns: 1 })
      for (const [stopReason, status] of [
        ["error", "failed"],
        ["aborted", "cancelled"]
      ] as const) {
        const broken = yield* Steps.answer(started, Message.assistant("Let me", { stopReason }))
        assert.deepStrictEqual(Steps.next(broken), { _tag: "Done", status })
        const done = yield* Steps.answer(broken, Message.assistant("done"))
        assert.deepStrictEqual(Steps.next(done), { _tag: "Done", status: "completed" })
      }
    })
  )

  it.effect("is terminated if each result requests it, also in parts (row 95)", () =>
    Effect.gen(function* () {
      const state = yield* called("a", "b")
      const over = (id: string) => ({ ...resultOf(id), terminate: true })
      const half = yield* stored(yield* Steps.results(state, [over("a")]))
      const over2 = yield* Steps.results(half, [over("b")])
      assert.deepStrictEqual(Steps.next(over2), { _tag: "Done", status: "terminated" })
      const mixed = yield* Steps.results(half, [resultOf("b")])
      assert.strictEqual(Steps.next(mixed)._tag, "CallModel")
      assert.strictEqual(Steps.next(yield* Steps.prompt(over2, "More"))._tag, "CallModel")
    })
  )

  it.effect("ends a call at the time limit of the tool or the options (row 95)", () =>
    Effect.gen(function* () {
      const slow = Tool.make({ name: "echo", description: "Sleeps.", execute: () => Effect.never })
      const state = yield* Steps.start("hi", { ...options, toolTimeout: "2 seconds" }).pipe(
        Effect.flatMap((started) => Steps.answer(started, calling("a")))
      )
      const step = Steps.next(state)
      const [call] = step._tag === "CallTools" ? step.calls : []
      if (call === undefined) return assert.fail()
      const running = yield* Effect.forkChild(
        Effect.provide(Steps.call(state, call), ToolRegistry.layer(slow)),
        { startImmediately: true }
      )
      yield* TestClock.adjust("2 seconds")
      const result = yield* Fiber.join(running)
      assert.deepStrictEqual(
        [result.outcome, Message.textOf(result)],
        ["timeout", "Tool echo timed out after 2s."]
      )
    })
  )

  it.effect("gives a tool the key that a run gives it (row 95)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const keyed = Tool.make({
        name: "echo",
        description: "Keeps its key.",
        execute: () => Effect.map(Tool.ToolContext, ({ idempotencyKey }) => void keys.push(idempotencyKey))
      })
      const state = yield* called("a b")
      const step = Steps.next(state)
      const [call] = step._tag === "CallTools" ? step.calls : []
      if (call === undefined) return assert.fail()
      yield* Effect.provide(Steps.call(state, call), ToolRegistry.layer(keyed))
      assert.deepStrictEqual(keys, [`${state.messages[1]?.id}.a~w~b`])
    })
  )
})
