import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import {
  Agent,
  ContextManager,
  Hook,
  Loop,
  Message,
  type Provider,
  ProviderError,
  ToolRegistry,
  Transcript
} from "effect-agent"
import { OpenAiCompatible } from "effect-agent/providers"
import { Retry } from "effect-agent/resilience"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "../behaviour/invariants.ts"
import { agent, ofTag, play, reasonOf, say, tags, texts } from "../behaviour/play.ts"
import { refuse, serve } from "../providers/server.ts"

const overflow = ScriptedProvider.fail(
  new ProviderError.ContextOverflow({ detail: "too long", limit: 1000, size: 9000 })
)
const isOverflow = { _tag: "ProviderError", reason: { _tag: "ContextOverflow" } }
const call = ScriptedProvider.toolCall("dump", {})
const done = ScriptedProvider.text("done")
const dump = say("dump", "x".repeat(50_000))

/** A conversation whose older messages can be left out. */
const older = [Message.user("q"), Message.assistant("x".repeat(50_000))]

/** Puts a summary in place of all turns but the last, and counts how often it was asked. */
const cutting = () => {
  const asked: Array<number> = []
  const layer = compacting(({ messages }) =>
    Effect.sync(() => {
      asked.push(messages.length)
      const start = Transcript.turnStarts(messages).at(-1) ?? 0
      const firstKept = messages[start]?.id
      return start === 0 || firstKept === undefined
        ? undefined
        : { tokensBefore: 9, summarize: Effect.succeed({ summary: "[cut]", firstKept, tokensAfter: 5 }) }
    })
  )
  return { asked, layer }
}

/** A manager that compacts after an overflow only. */
const compacting = (compact: NonNullable<ContextManager.Service["compact"]>) =>
  Layer.effect(
    ContextManager.ContextManager,
    Effect.map(ContextManager.ContextManager, (whole) => ({
      ...whole,
      compact: (conversation, trigger) =>
        trigger.reason === "overflow" ? compact(conversation, trigger) : Effect.undefined
    }))
  )

/** The texts of a request, the first characters of each. */
const starts = (request: Provider.ModelRequest | undefined) =>
  texts(request?.messages ?? []).map((text) => text.replace(/^[^]*\n/, "").slice(0, 5))

const reason = (error: unknown) => JSON.parse(JSON.stringify(error))

describe("a conversation that is too long", () => {
  it.effect("F119: fails typed after one request, retries or not, and the agent can be used again", () =>
    Effect.gen(function* () {
      const patient = yield* play([call, overflow, done], { tools: [dump], around: Retry.layer() })
      assert.deepNestedInclude(reason(reasonOf(patient.exit)), { "reason._tag": "ContextOverflow" })
      assert.strictEqual(patient.requests.length, 2)
      assert.deepStrictEqual(Invariants.broken(patient.events), [])

      const script = yield* agent([call, overflow, done], { tools: [dump] })
      yield* Effect.flip(script.agent.prompt("hi"))
      yield* script.agent.setMessages([])
      assert.strictEqual((yield* script.agent.prompt("again")).status, "completed")
    })
  )

  it.effect("F119: is made shorter once, and the turn goes on from that", () =>
    Effect.gen(function* () {
      const { asked, layer } = cutting()
      const { events, requests, view } = yield* play([overflow, call, done], {
        tools: [dump],
        messages: older,
        layer
      })
      assert.strictEqual(view.status, "completed")
      assert.deepStrictEqual(asked, [3])
      assert.deepStrictEqual(requests.map(starts), [
        ["q", "xxxxx", "hi"],
        ["q", "[cut]", "hi"],
        // Later turns go on from there; the transcript keeps what was said.
        ["q", "[cut]", "hi", "", "xxxxx"]
      ])
      assert.strictEqual(view.messages.length, 6)
      const first = events.filter(({ turn }) => turn === 1)
      assert.deepStrictEqual(tags(first).slice(0, 9), [
        "TurnStart",
        "MessageStart",
        "MessageEnd",
        "ModelCallStart",
        "Compaction",
        "Compaction",
        "ContextTransformed",
        "ModelCallError",
        "ModelCallRetry"
      ])
      assert.deepStrictEqual(
        ofTag(events, "Compaction").map(({ reason, status, tokensAfter }) => [status, reason, tokensAfter]),
        [
          ["start", "overflow", undefined],
          ["end", "overflow", 5]
        ]
      )
      assert.deepInclude(ofTag(events, "ContextTransformed")[0], {
        reason: "compaction",
        kept: 3,
        dropped: 1
      })
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("F119: that is still too long then fails, with no third request in the turn", () =>
    Effect.gen(function* () {
      const { asked, layer } = cutting()
      const { events, exit, requests } = yield* play([overflow, overflow, done], {
        tools: [dump],
        messages: older,
        layer
      })
      assert.deepNestedInclude(reason(reasonOf(exit)), { "reason._tag": "ContextOverflow" })
      assert.deepStrictEqual([requests.length, asked.length], [2, 1])
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("F119: of which nothing is left to shorten fails with no second request", () =>
    Effect.gen(function* () {
      const { asked, layer } = cutting()
      const { events, exit, requests } = yield* play([overflow, done], { layer })
      assert.deepNestedInclude(reason(reasonOf(exit)), { "reason._tag": "ContextOverflow" })
      assert.deepStrictEqual([requests.length, asked.length], [1, 1])
      assert.deepStrictEqual(ofTag(events, "Compaction"), [])
    })
  )

  it.effect("F119: fails with its own reason when making it shorter is too long itself", () =>
    Effect.gen(function* () {
      const summing = yield* ScriptedProvider.make([overflow])
      const layer = compacting(({ messages }) =>
        Effect.succeed({
          tokensBefore: 9,
          summarize: Loop.run("Sum up.", { messages }, { model: "m" }).pipe(
            Effect.provide([summing.layer, ToolRegistry.layer()]),
            Effect.map(({ text }) => ({ summary: text, firstKept: "none", tokensAfter: 5 }))
          )
        })
      )
      const { events, exit, requests } = yield* play([overflow, done], { messages: older, layer })
      assert.deepNestedInclude(reason(reasonOf(exit)), {
        "reason._tag": "ContextOverflow",
        "reason.size": 9000
      })
      assert.deepStrictEqual([requests.length, (yield* summing.requests).length], [1, 1])
      const failed = ofTag(events, "Compaction").at(-1)
      assert.deepNestedInclude(reason(failed), {
        status: "failed",
        "error._tag": "CompactionFailed",
        "error.reason.reason._tag": "ContextOverflow"
      })
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("F119: is not made shorter behind the back of an answer that has begun", () =>
    Effect.gen(function* () {
      const { asked, layer } = cutting()
      const begun = ScriptedProvider.turn(Step.start, Step.text("We"), ...overflow.steps)
      const { requests } = yield* play([begun, done], { messages: older, layer })
      assert.deepStrictEqual([requests.length, asked.length], [1, 0])
    })
  )

  it.effect("F119: can be cancelled while it is made shorter", () =>
    Effect.gen(function* () {
      const summarize = Effect.suspend(() => Effect.andThen(cancel, Effect.never))
      const script = yield* agent([call, overflow, done], { tools: [dump] }).pipe(
        Effect.provide(compacting(() => Effect.succeed({ tokensBefore: 9, summarize })))
      )
      const cancel: Effect.Effect<void> = Effect.suspend(() => script.agent.cancel())
      assert.strictEqual((yield* script.agent.prompt("hi")).status, "cancelled")
    })
  )

  it.effect("F119: can be made shorter by the application, which tries once and goes on", () =>
    Effect.gen(function* () {
      const script = yield* agent([call, overflow, done], {
        tools: [dump],
        hooks: [Hook.onError(() => Effect.void)]
      })
      yield* Effect.catchReason(script.agent.prompt("hi"), "RunFailed", "ProviderError", () =>
        Effect.andThen(script.agent.setMessages([Message.user("in short")]), script.agent.continue)
      )
      assert.deepStrictEqual(texts((yield* script.requests).at(-1)?.messages ?? []), ["in short"])
    })
  )

  it.live(
    "F119: is told as such by a server, and asked for once, with the retries that are the default",
    () =>
      Effect.gen(function* () {
        const server = yield* serve((response) =>
          refuse(response, 400, {
            error: {
              message: "This model's maximum context length is 1000 tokens. Your messages had 9000 tokens.",
              type: "invalid_request_error",
              code: "context_length_exceeded"
            }
          })
        )
        const provider = OpenAiCompatible.layer({
          ...OpenAiCompatible.presets.openAi,
          baseUrl: server.baseUrl,
          apiKey: Redacted.make("a key of this test")
        })
        const made = yield* Agent.make({ model: "m" }).pipe(
          Effect.provide(Retry.layer()(provider).pipe(Layer.provide(FetchHttpClient.layer)))
        )
        const failure = yield* Effect.flip(made.prompt("hi"))
        assert.deepNestedInclude(reason(failure), {
          "reason._tag": isOverflow._tag,
          "reason.reason._tag": isOverflow.reason._tag
        })
        assert.strictEqual(server.requests.length, 1)
      })
  )
})
