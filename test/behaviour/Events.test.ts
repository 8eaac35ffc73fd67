import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Exit, Fiber, Schema, Stream } from "effect"
import { AgentEvent, Hook, Message, ProviderError, Tool } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { agent, echo, failing, ofTag, play, range, say, status, tags } from "./play.ts"

const done = ScriptedProvider.text("done")

const Call = Schema.Literals(["ok", "ok", "bad", "dies", "nope", "malformed", "ends", "slow", "repeat"])
const Finish = Schema.Literals([
  "toolUse",
  "toolUse",
  "toolUse",
  "stop",
  "length",
  "fail",
  "eof",
  "die",
  "error"
])
/** A run at random: what the model says, what the options are, and who disturbs it when. */
const Case = Schema.Struct({
  turns: Schema.Array(
    Schema.Struct({ calls: Schema.Array(Call).check(Schema.isMaxLength(3)), finish: Finish })
  ).check(Schema.isMaxLength(3)),
  sequential: Schema.Boolean,
  failMode: Schema.Boolean,
  skipRemaining: Schema.Boolean,
  maxTurns: Schema.Literals([0, 1, 2, 50]),
  onMaxTurns: Schema.Literals(["fail", "stop", "wrapUp"]),
  maxToolCalls: Schema.Literals([0, 2, 99]),
  guard: Schema.Literals(["none", "reject", "block", "skip", "fail", "change"]),
  disturb: Schema.Literals(["nobody", "cancel", "pause", "steer", "followUp"]),
  at: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 }))
})
type Case = typeof Case.Type

const tools = [
  say("ok"),
  failing("bad"),
  Tool.make({ name: "dies", description: "Dies.", execute: () => Effect.die("boom") }),
  say("ends", Tool.output("over", { terminate: true })),
  Tool.make({
    name: "slow",
    description: "Takes a while.",
    execute: () => Effect.repeat(Effect.yieldNow, { times: 5 })
  })
]

const finishOf = (finish: typeof Finish.Type): Step.Step => {
  switch (finish) {
    case "fail":
      return Step.fail(new ProviderError.Overloaded({ detail: "busy" }))
    case "eof":
      return Step.eof
    case "die":
      return Step.die("boom")
    default:
      return Step.finish(finish, { input: 3, output: 2 })
  }
}

const scriptOf = ({ turns }: Case): ScriptedProvider.Script =>
  turns.map(({ calls, finish }) =>
    ScriptedProvider.turn(
      Step.start,
      Step.text(["a", "b"]),
      ...calls.map((call) =>
        call === "malformed"
          ? Step.rawToolCall("ok", ["{"])
          : Step.toolCall(call === "repeat" ? "ok" : call, {}, call === "repeat" ? { id: "same" } : {})
      ),
      finishOf(finish)
    )
  )

const guardOf = ({ guard }: Case): ReadonlyArray<Hook.Runnable> => {
  switch (guard) {
    case "none":
      return []
    case "reject":
      return [Hook.approveTool(() => Effect.succeed({ approved: false }))]
    case "fail":
      return [Hook.approveTool(() => Effect.fail("broke"))]
    case "change":
      return [Hook.beforeTool(() => Effect.succeed({ params: {} }))]
    case "block":
      return [Hook.beforeTool(() => Effect.succeed({ block: true }))]
    default:
      return [Hook.beforeTool(() => Effect.succeed({ skip: true }))]
  }
}

/** Plays a case on an agent, disturbed at its `at`th event. */
const disturbed = Effect.fnUntraced(function* (wanted: Case) {
  const provider = scriptOf(wanted)
  const script = yield* agent([...provider, ...range(60).map(() => done)], {
    tools,
    hooks: guardOf(wanted),
    toolExecution: wanted.sequential ? "sequential" : "parallel",
    toolFailureMode: wanted.failMode ? "fail" : "continue",
    steeringPolicy: wanted.skipRemaining ? "skipRemaining" : "afterTurn",
    limits: {
      maxTurns: wanted.maxTurns,
      onMaxTurns: wanted.onMaxTurns,
      maxToolCalls: wanted.maxToolCalls,
      maxIdenticalToolCalls: Infinity
    }
  })
  let steered = 0
  const queue = (text: string) => Message.user(`queued ${++steered} ${text}`)
  yield* script.agent.subscribe((event) => {
    if (event._tag === "RunPaused") return script.agent.resume()
    if (event.seq !== wanted.at) return Effect.void
    switch (wanted.disturb) {
      case "cancel":
        return script.agent.cancel("enough")
      case "pause":
        return script.agent.pause("lunch")
      case "steer":
        return script.agent.steer([queue("a"), queue("b")])
      case "followUp":
        return script.agent.followUp([queue("a"), queue("b")])
      case "nobody":
        return Effect.void
    }
  })
  const exit = yield* Effect.exit(script.agent.prompt("hi"))
  const sizes = yield* script.agent.queues.sizes
  const heard = ofTag(script.events, "MessageEnd").filter(({ message }) =>
    Message.textOf(message).startsWith("queued")
  ).length
  return { exit, script, lost: steered - heard - sizes.steering - sizes.followUp }
})

describe("Events", () => {
  it.effect(
    "are ordered, paired and complete in every run, and each call has exactly one result (row 69)",
    () =>
      Effect.gen(function* () {
        const checked = yield* Arbitrary.checkEffect(
          Arbitrary.schema(Case),
          (wanted) =>
            Effect.gen(function* () {
              const { exit, lost, script } = yield* Effect.scoped(disturbed(wanted))
              const failed = status(script.events) === "failed"
              const rules = [
                ...Invariants.broken(script.events),
                ...(Exit.isFailure(exit) === failed ? [] : ["the exit and the status differ"]),
                ...(lost === 0 ? [] : [`${lost} queued messages are lost`])
              ]
              assert.deepStrictEqual(rules, [], JSON.stringify(wanted))
              return true
            }),
          { runs: 150, seed: 12 }
        )
        assert.strictEqual(checked._tag, "Passed", JSON.stringify(checked, null, 1).slice(0, 3000))
      }),
    60_000
  )

  it.effect("turns are numbered from 1, in the stream as for a subscriber (rows 71, 72)", () =>
    Effect.gen(function* () {
      const script = [ScriptedProvider.toolCall("a", {}), ScriptedProvider.toolCall("a", {}), done]
      const { events } = yield* play(script, { tools: [say("a")] })
      const folded = yield* agent(script, { tools: [say("a")] })
      const { turns } = yield* folded.agent.prompt("hi")
      const numbers = (all: ReadonlyArray<AgentEvent.AgentEvent>) =>
        ofTag(all, "TurnStart").map(({ turn }) => turn)
      assert.deepStrictEqual(numbers(events), [1, 2, 3])
      assert.deepStrictEqual(numbers(folded.events), [1, 2, 3])
      assert.strictEqual(turns, 3)
      assert.isUndefined(events[0]?.turn)
      assert.isUndefined(events.at(-1)?.turn)
    })
  )

  it.effect("are the same for the stream, a subscriber and a reader of `events`", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.toolCall("a", {}), done], { tools: [say("a")] })
      const read: Array<AgentEvent.AgentEvent> = []
      const reader = yield* script.agent.events.pipe(
        Stream.takeUntil(({ _tag }) => _tag === "RunEnd"),
        Stream.runForEach((event) => Effect.sync(() => read.push(event))),
        Effect.forkChild({ startImmediately: true })
      )
      const streamed = yield* Stream.runCollect(script.agent.stream("hi"))
      yield* Fiber.join(reader)
      assert.deepStrictEqual(script.events, streamed)
      assert.deepStrictEqual(read, streamed)
    })
  )

  it.effect("survive JSON, each of them (row 235)", () =>
    Effect.gen(function* () {
      const codec = Schema.toCodecJson(AgentEvent.AgentEvent)
      const all = [
        yield* play(
          [
            ScriptedProvider.turn(
              Step.start,
              Step.thinking(["hm"], { opaque: { signature: "s" } }),
              Step.text(["a"]),
              Step.toolCall("bad", {}),
              Step.rawToolCall("nope", ["{"]),
              Step.finish("toolUse", { input: 1, cost: 0.1 })
            ),
            ScriptedProvider.fail(new ProviderError.RateLimited({ detail: "slow down" }))
          ],
          { tools: [failing("bad")], hooks: [Hook.afterModel(() => Effect.fail("broke"))] }
        ),
        yield* play([ScriptedProvider.die(new Error("boom"))]),
        yield* play([ScriptedProvider.toolCall("a", {})], {
          tools: [say("a")],
          options: { limits: { maxTurns: 1 }, hookTimeout: "Infinity" }
        })
      ]
      for (const { events } of all) {
        for (const event of events) {
          const encoded: unknown = yield* Schema.encodeEffect(codec)(event)
          const decoded = yield* Schema.decodeUnknownEffect(codec)(JSON.parse(JSON.stringify(encoded)))
          assert.deepStrictEqual(decoded, event)
        }
      }
    })
  )

  it.effect("a failure makes balanced events: every message and turn that began ends, once", () =>
    Effect.gen(function* () {
      const boom = () => Effect.die("boom")
      const cases = [
        play([ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.die("boom"))]),
        play([ScriptedProvider.turn(Step.text("Hel"), Step.eof)]),
        play([done], { hooks: [Hook.transformMessages(boom)] }),
        play([done], { hooks: [Hook.toModelMessages(boom)] }),
        play([done], { hooks: [Hook.prepareNextTurn(boom)] }),
        play([done], { hooks: [Hook.steering(boom)] }),
        play([done], {
          options: { transcript: "strict" },
          messages: [Message.toolResult({ id: "x", name: "x" }, "")]
        })
      ]
      for (const one of cases) {
        const { events } = yield* one
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.strictEqual(status(events), "failed")
      }
    })
  )

  it.effect(
    "a model call that fails gives an empty answer with its error, then the ends of turn and run (row 205)",
    () =>
      Effect.gen(function* () {
        const busy = new ProviderError.Overloaded({ detail: "busy" })
        const { events, view } = yield* play([ScriptedProvider.fail(busy)])
        assert.deepStrictEqual(tags(events).slice(-6), [
          "MessageStart",
          "MessageEnd",
          "ModelCallError",
          "TurnEnd",
          "RunError",
          "RunEnd"
        ])
        const [, answer] = view.messages
        assert.deepInclude(answer, { role: "assistant", stopReason: "error", content: [] })
        assert.include(answer?.role === "assistant" ? answer.errorMessage : "", "busy")
      })
  )

  it.effect("a failure says whether another run may succeed (row 246)", () =>
    Effect.gen(function* () {
      const reasons = [
        new ProviderError.Overloaded({ detail: "busy" }),
        new ProviderError.Unauthenticated({ detail: "no" })
      ]
      for (const reason of reasons) {
        const { events } = yield* play([ScriptedProvider.fail(reason)])
        assert.strictEqual(ofTag(events, "RunError")[0]?.retryable, reason._tag === "Overloaded")
      }
    })
  )

  it.effect("the end of a failed run names all its messages, the prompt first", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play(
        [ScriptedProvider.toolCall("a", {}), ScriptedProvider.die("boom")],
        {
          tools: [say("a")]
        }
      )
      assert.deepStrictEqual(
        ofTag(events, "RunEnd")[0]?.newMessageIds,
        view.messages.map(({ id }) => id)
      )
      assert.deepStrictEqual(
        view.messages.map(({ role }) => role),
        ["user", "assistant", "toolResult", "assistant"]
      )
    })
  )

  it.effect("what was told does not change later", () =>
    Effect.gen(function* () {
      const then: Array<string> = []
      const script = yield* agent(
        [
          ScriptedProvider.turn(
            Step.text(["a", "b", "c"]),
            Step.toolCall("echo", { n: 1 }),
            Step.finish("toolUse")
          ),
          done
        ],
        { tools: [echo], hooks: [Hook.afterTool(() => Effect.succeed({ details: { seen: true } }))] }
      )
      yield* script.agent.subscribe((event) => Effect.sync(() => then.push(JSON.stringify(event))))
      yield* script.agent.prompt("hi")
      assert.deepStrictEqual(
        script.events.map((event) => JSON.stringify(event)),
        then
      )
    })
  )

  it.effect("an answer taken back is void: another begins, and only that one stays", () =>
    Effect.gen(function* () {
      const script = yield* agent(
        [
          ScriptedProvider.turn(
            Step.start,
            Step.text("wrong"),
            Step.toolCall("echo", { n: 1 }, { id: "x" }),
            Step.event({ _tag: "Retracted" }),
            Step.start,
            Step.event({ _tag: "TextDelta", contentIndex: 0, delta: "right" }),
            Step.finish()
          )
        ],
        { tools: [echo] }
      )
      const view = yield* script.agent.stream("hi").pipe(Stream.runFold(AgentEvent.initial, AgentEvent.fold))
      assert.deepStrictEqual(view.messages.map(Message.textOf), ["hi", "right"])
      const [retracted] = ofTag(script.events, "MessageRetracted")
      const starts = ofTag(script.events, "MessageStart").filter(({ role }) => role === "assistant")
      assert.strictEqual(retracted?.messageId, starts[0]?.messageId)
      assert.notStrictEqual(starts[0]?.messageId, starts[1]?.messageId)
      assert.notInclude(tags(script.events), "ToolExecutionStart")
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("a delta is a delta: ten times the text is ten times the bytes", () =>
    Effect.gen(function* () {
      const bytes = Effect.fnUntraced(function* (pieces: number) {
        const { events } = yield* play([ScriptedProvider.text(range(pieces).map(() => "0123456789"))])
        return ofTag(events, "MessageDelta").reduce(
          (sum, event) => sum + JSON.stringify(event.delta).length,
          0
        )
      })
      assert.isBelow(yield* bytes(1000), 11 * (yield* bytes(100)))
    })
  )

  it.effect("answers that failed share no usage object", () =>
    Effect.gen(function* () {
      const { view } = yield* play([ScriptedProvider.die("boom")])
      const answer = view.messages.at(-1)
      assert.isTrue(answer?.role === "assistant" && answer.usage === undefined)
    })
  )

  it.effect(
    "a subscriber's work is done before the next event, and before the tools of an answer begin (row 103)",
    () =>
      Effect.gen(function* () {
        const order: Array<string> = []
        const script = yield* agent([ScriptedProvider.toolCall("a", {}), done], {
          tools: [
            Tool.make({ name: "a", description: "", execute: () => Effect.sync(() => order.push("tool")) })
          ]
        })
        yield* script.agent.subscribe((event) =>
          event._tag === "MessageEnd" && event.message.role === "assistant"
            ? Effect.andThen(
                Effect.repeat(Effect.yieldNow, { times: 20 }),
                Effect.sync(() => order.push("heard"))
              )
            : Effect.void
        )
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(order, ["heard", "tool", "heard"])
      })
  )

  it.effect("filters give the text alone, or the kinds one asks for", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.text(["a", "b"]), ScriptedProvider.text("c")])
      const text = yield* Stream.runCollect(AgentEvent.textOnly(script.agent.stream("hi")))
      assert.deepStrictEqual(text, ["a", "b"])
      const kinds = yield* script.agent
        .stream("hi")
        .pipe(AgentEvent.ofTag("RunStart", "RunEnd"), Stream.runCollect)
      assert.deepStrictEqual(tags(kinds), ["RunStart", "RunEnd"])
    })
  )

  it.effect("RunStart has the version and the options of the run, without what may be secret", () =>
    Effect.gen(function* () {
      const { events } = yield* play([done], {
        options: {
          system: "Never name the price.",
          toolTimeout: "2 seconds",
          approvalTimeout: "Infinity",
          hookTimeout: 5n,
          modelOptions: {
            temperature: 0,
            vendor: { openai: { tools: [{ authorization: "Bearer x" }] } },
            hostedTools: [{ type: "codeExecution", vendor: { openai: { container: "Bearer x" } } }]
          },
          limits: { maxTurns: Infinity, executionTime: { minutes: 1 } }
        },
        hooks: [Hook.beforeExecution(() => Effect.succeed({ modified: { model: "other" } }))]
      })
      const start = ofTag(events, "RunStart")[0]
      assert.strictEqual(start?.v, 2)
      assert.deepStrictEqual(start?.options, {
        model: "m",
        toolTimeout: 2000,
        approvalTimeout: "Infinity",
        hookTimeout: 0.000005,
        modelOptions: { temperature: 0, hostedTools: [{ type: "codeExecution" }] },
        limits: { maxTurns: Infinity, executionTime: 60_000 }
      })
      const codec = Schema.fromJsonString(Schema.toCodecJson(AgentEvent.AgentEvent))
      const text = yield* Schema.encodeUnknownEffect(codec)(start)
      assert.deepStrictEqual(yield* Schema.decodeEffect(codec)(text), start)
    })
  )

  it.effect("events of version 1 decode", () =>
    Effect.gen(function* () {
      const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(AgentEvent.AgentEvent))
      const base = { runId: "r", seq: 1, timestamp: 0 }
      const start = { ...base, _tag: "RunStart", v: 1, prompts: [], model: "m", continued: false } as const
      const child = { ...base, _tag: "TurnStart", turn: 1, parent: { runId: "p", toolCallId: "c" } } as const
      for (const event of [start, child]) assert.deepStrictEqual(yield* decode(event), event)
    })
  )
})
