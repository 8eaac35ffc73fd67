import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Stream } from "effect"
import { Loop, Message, ProviderError, ToolRegistry, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { agent, ofTag, play, reasonOf, say, status, texts, toolResults } from "./play.ts"

const done = ScriptedProvider.text("done")
const busy = new ProviderError.Overloaded({ detail: "busy" })
const user = Message.user("go")
const failed = Message.assistant("half", { stopReason: "error", errorMessage: "busy" })
const aborted = Message.assistant([{ type: "toolCall", id: "x", name: "t", rawArguments: '{"a' }], {
  stopReason: "aborted"
})
const calls = Message.assistant(
  ["x", "y"].map((id) => ({ type: "toolCall", id, name: "t", rawArguments: "{}", params: {} })),
  { stopReason: "toolUse" }
)
const result = (id: string) => Message.toolResult({ id, name: "t" }, `result ${id}`)

/** Resumes the stateless loop, and gives its events and what the model was asked. */
const resumed = Effect.fnUntraced(function* (
  messages: ReadonlyArray<Message.Message>,
  transcript: "repair" | "strict" = "repair"
) {
  const provider = yield* ScriptedProvider.make([done])
  const events = yield* Loop.continue({ messages }, { model: "m", transcript }).pipe(
    Stream.runCollect,
    Effect.provide([provider.layer, ToolRegistry.layer(say("t"))])
  )
  return { events, requests: yield* provider.requests }
})

/** The same by an agent. */
const resumedByAgent = Effect.fnUntraced(function* (
  messages: ReadonlyArray<Message.Message>,
  transcript: "repair" | "strict" = "repair"
) {
  const script = yield* agent([done], { messages, transcript, tools: [say("t")] })
  yield* script.agent.continue
  return { events: script.events, requests: yield* script.requests }
})

const messagesOf = (state: { readonly messages: ReadonlyArray<Message.Message> }) => state.messages

describe("resume", () => {
  for (const [name, turn] of [
    ["before it said anything", ScriptedProvider.fail(busy)],
    ["in mid-text", ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.fail(busy))],
    [
      "in mid-call",
      ScriptedProvider.turn(
        Step.start,
        Step.event({ _tag: "ToolCallStart", contentIndex: 0, id: "x", name: "t" }),
        Step.event({ _tag: "ToolCallDelta", contentIndex: 0, delta: '{"a' }),
        Step.fail(busy)
      )
    ]
  ] as const) {
    it.effect(`asks again after an answer that failed ${name}; the transcript only grows`, () =>
      Effect.gen(function* () {
        const script = yield* agent([turn, done], { tools: [say("t")] })
        yield* Effect.flip(script.agent.prompt("hi"))
        const before = messagesOf(yield* script.agent.state.get)
        assert.strictEqual(before.length, 2)
        script.events.length = 0
        const { newMessages, status: ended } = yield* script.agent.continue
        assert.strictEqual(ended, "completed")
        assert.deepStrictEqual(texts(newMessages), ["done"])
        const [first, second] = yield* script.requests
        assert.deepStrictEqual(second?.messages, first?.messages)
        const after = messagesOf(yield* script.agent.state.get)
        assert.deepStrictEqual(after.slice(0, 2), before)
        assert.deepStrictEqual(texts(after).slice(2), ["done"])
        assert.deepStrictEqual(Transcript.violations(after), [])
        assert.deepInclude(script.events[0], { _tag: "RunStart", continued: true, prompts: [] })
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )
  }

  it.effect("asks again after a cancelled answer, and again after that one fails too", () =>
    Effect.gen(function* () {
      const spoke = yield* Latch.make(false)
      const silent = ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.run(spoke.open), Step.never)
      const script = yield* agent([silent, ScriptedProvider.fail(busy), done])
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* spoke.await
      yield* script.agent.cancel()
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      assert.strictEqual((yield* Effect.flip(script.agent.continue))._tag, "RunFailed")
      assert.deepStrictEqual(texts((yield* script.agent.continue).newMessages), ["done"])
      assert.deepStrictEqual(
        (yield* script.requests).map(({ messages }) => texts(messages)),
        [["hi"], ["hi"], ["hi"]]
      )
    })
  )

  it.effect("after an answer that failed behind tool results sends these, and takes steering", () =>
    Effect.gen(function* () {
      const script = yield* agent([ScriptedProvider.toolCall("t", {}), ScriptedProvider.fail(busy), done], {
        tools: [say("t")]
      })
      yield* Effect.flip(script.agent.prompt("hi"))
      yield* script.agent.steer("hurry")
      yield* script.agent.continue
      const [, , last] = yield* script.requests
      assert.deepStrictEqual(texts(last?.messages ?? []), ["hi", "", "t", "hurry"])
    })
  )

  it.effect("sends no broken answer, in a loop and in an agent, and in a strict one too", () =>
    Effect.gen(function* () {
      for (const resume of [resumed, resumedByAgent]) {
        for (const transcript of ["repair", "strict"] as const) {
          for (const tail of [[failed], [aborted], [failed, aborted, failed]]) {
            const { events, requests } = yield* resume([user, ...tail], transcript)
            assert.deepStrictEqual(requests[0]?.messages, [user])
            assert.strictEqual(status(events), "completed")
          }
          const { requests } = yield* resume([user, calls, result("x"), result("y"), failed], transcript)
          assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["go", "", "result x", "result y"])
        }
      }
    })
  )

  it.effect("is refused where only broken answers follow an answer, or nothing was ever asked", () =>
    Effect.gen(function* () {
      for (const messages of [
        [user, Message.assistant("a"), failed],
        [failed],
        [user, Message.assistant("a")]
      ]) {
        for (const resume of [resumed, resumedByAgent]) {
          assert.deepInclude(yield* Effect.flip(resume(messages)), {
            _tag: "InvalidContinuation",
            message: "Cannot continue from message role: assistant"
          })
        }
      }
    })
  )

  it.effect("answers open calls with errors first, in a loop as in an agent", () =>
    Effect.gen(function* () {
      for (const resume of [resumed, resumedByAgent]) {
        for (const [given, missing] of [
          [[], ["x", "y"]],
          [[result("x")], ["y"]]
        ] as const) {
          const { events, requests } = yield* resume([user, calls, ...given], "strict")
          const made = toolResults(ofTag(events, "MessageEnd").map(({ message }) => message))
          assert.deepStrictEqual(
            made.map(({ isError, outcome, toolCallId }) => [toolCallId, outcome, isError]),
            missing.map((id) => [id, "aborted", true])
          )
          assert.deepStrictEqual(ofTag(events, "RunStart")[0]?.prompts, made)
          assert.isTrue(ofTag(events, "RunStart")[0]?.continued)
          assert.deepStrictEqual(requests[0]?.messages, [user, calls, ...given, ...made])
          assert.deepStrictEqual(ofTag(events, "ToolInvoked"), [])
        }
      }
    })
  )

  it.effect("an empty prompt behind a broken answer is answered with what was asked before it", () =>
    Effect.gen(function* () {
      const asked = yield* play([done], { messages: [user, failed], prompt: [Message.user(" ")] })
      assert.strictEqual(status(asked.events), "completed")
      const nothing = yield* play([], { messages: [failed], prompt: [Message.user(" ")] })
      assert.strictEqual(reasonOf(nothing.exit)?._tag, "InvalidTranscript")
      const answered = yield* play([], {
        messages: [user, Message.assistant("a"), failed],
        prompt: [Message.user(" ")]
      })
      assert.strictEqual(reasonOf(answered.exit)?._tag, "InvalidTranscript")
    })
  )
})
