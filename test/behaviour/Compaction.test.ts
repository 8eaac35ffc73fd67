import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer } from "effect"
import {
  Agent,
  ContextManager,
  Hook,
  Loop,
  Message,
  Prices,
  ProviderError,
  Run,
  ToolRegistry,
  Transcript,
  Usage
} from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, ofTag, play, range, reasonOf, say, settle, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const long = "x".repeat(4_000)
const history = range(3).flatMap((n) => [Message.user(`q${n}`), Message.assistant(long)])
const asked = Usage.make({ input: 30, output: 3, cost: 0.25 })

type Manager = ContextManager.Service
type Compact = NonNullable<Manager["compact"]>

const managing = (compact: Compact) =>
  Layer.succeed(ContextManager.ContextManager, {
    view: (messages) => Effect.succeed({ messages, dropped: 0, reason: "window" }),
    compact
  })

/** A plan that keeps the newest turn. */
const planOf = (
  { messages }: ContextManager.Conversation,
  tokensBefore: number,
  summarize?: ContextManager.Plan["summarize"]
): ContextManager.Plan | undefined => {
  const firstKept = messages[Transcript.turnStarts(messages).at(-1) ?? 0]?.id
  return firstKept === undefined || firstKept === messages[0]?.id
    ? undefined
    : {
        tokensBefore,
        summarize:
          summarize ?? Effect.succeed({ summary: "They talked.", firstKept, tokensAfter: 7, usage: asked })
      }
}

/** Compacts for these reasons, and keeps what it was asked. */
const manager = (
  reasons: ReadonlyArray<ContextManager.Trigger["reason"]>,
  summarize?: ContextManager.Plan["summarize"],
  size = () => 100
) => {
  const calls: Array<ContextManager.Conversation & ContextManager.Trigger> = []
  const layer = managing((conversation, trigger) =>
    Effect.sync(() => {
      calls.push({ ...conversation, ...trigger })
      return reasons.includes(trigger.reason) ? planOf(conversation, size(), summarize) : undefined
    })
  )
  return { calls, layer }
}

const compactions = (events: Parameters<typeof Invariants.broken>[0]) =>
  ofTag(events, "Compaction").map(({ reason, status }) => `${reason} ${status}`)

/** The last lines of the texts of a request, the first characters of each. */
const sent = (messages: ReadonlyArray<Message.Message> = []) =>
  texts(messages).map((text) => text.replace(/^[^]*\n/, "").slice(0, 12))

describe("Compaction", () => {
  it.effect("before a request puts a summary in place of older messages, and the transcript stays", () =>
    Effect.gen(function* () {
      const { calls, layer } = manager(["threshold"])
      const { events, exit, requests, view } = yield* play([done], { messages: history, layer })
      assert.deepStrictEqual(sent(requests[0]?.messages), ["q0", "They talked.", "hi"])
      assert.deepStrictEqual(Transcript.violations(requests[0]?.messages ?? []), [])
      assert.strictEqual(view.messages.length, 8)
      assert.deepStrictEqual(compactions(events), ["threshold start", "threshold end"])
      const [start, end] = ofTag(events, "Compaction")
      assert.deepInclude(start, { tokensBefore: 100 })
      assert.deepInclude(end, { tokensBefore: 100, tokensAfter: 7, usage: asked })
      assert.match(end?.entryId ?? "", /^compaction_/)
      assert.strictEqual(calls[0]?.measured, undefined)
      assert.deepStrictEqual(tags(events).slice(3, 8), [
        "MessageEnd",
        "Compaction",
        "Compaction",
        "ContextTransformed",
        "ModelCallStart"
      ])
      assert.deepStrictEqual(Invariants.broken(events), [])
      assert.isTrue(Exit.isSuccess(exit))
    })
  )

  it.effect("follows an answer whose request was larger than the context window (row 189)", () =>
    Effect.gen(function* () {
      const { calls, layer } = manager(["overflow"])
      const windowed = (contextWindow?: number) =>
        Prices.layer({
          m: { input: 1, output: 1, ...(contextWindow === undefined ? {} : { contextWindow }) }
        })
      const large = ScriptedProvider.text("cut", { usage: { input: 120, output: 1 } })
      const small = ScriptedProvider.text("whole", { usage: { input: 30, output: 1 } })
      const played = yield* play([large, small], {
        messages: history,
        layer: Layer.merge(layer, windowed(100))
      })
      assert.deepStrictEqual(compactions(played.events), ["overflow start", "overflow end"])
      assert.deepInclude(calls.at(-1), { reason: "overflow", limit: 100 })
      assert.deepStrictEqual(sent(played.requests[1]?.messages), ["q0", "They talked.", "hi"])
      assert.strictEqual(ofTag(played.events, "MessageRetracted").length, 1)
      assert.deepStrictEqual(texts(played.view.messages).slice(-2), ["hi", "whole"])
      // Both answers, and the summary, are paid for.
      assert.strictEqual(played.view.usage?.total, 121 + 31 + asked.total)
      assert.deepStrictEqual(Invariants.broken(played.events), [])

      const again = yield* play([large, large], {
        messages: history,
        layer: Layer.merge(layer, windowed(100))
      })
      assert.deepStrictEqual(compactions(again.events), ["overflow start", "overflow end"])
      assert.strictEqual(texts(again.view.messages).at(-1), "cut")

      for (const contextWindow of [120, undefined]) {
        const { exit, view } = yield* play([large], { messages: history, layer: windowed(contextWindow) })
        assert.isTrue(Exit.isSuccess(exit))
        assert.strictEqual(texts(view.messages).at(-1), "cut")
      }
      const searched = ScriptedProvider.turn(
        Step.hostedTool({ id: "s", name: "web_search", params: {}, result: [] }),
        Step.text("found"),
        Step.finish("stop", { input: 120, output: 1 })
      )
      const added = yield* play([searched], { layer: windowed(100) })
      assert.strictEqual(texts(added.view.messages).at(-1), "found")
    })
  )

  it.effect(
    "keeps an answer to a request larger than the price list says where nothing compacts, and reports it",
    () =>
      Effect.gen(function* () {
        const layer = Prices.layer({ m: { input: 1, output: 1, contextWindow: 100 } })
        const broken = manager(["overflow"], Effect.fail("no summary"))
        const large = ScriptedProvider.text("whole", { usage: { input: 120, output: 1 } })
        for (const managing of [Layer.empty, manager([]).layer, broken.layer]) {
          const { events, exit, view } = yield* play([large], {
            messages: history,
            layer: Layer.merge(managing, layer)
          })
          assert.isTrue(Exit.isSuccess(exit))
          assert.strictEqual(texts(view.messages).at(-1), "whole")
          assert.deepStrictEqual(ofTag(events, "MessageRetracted"), [])
          const [note] = ofTag(events, "ModelCallEnd")[0]?.adjusted ?? []
          assert.deepInclude(note, { option: "contextWindow", asked: 100, sent: 120 })
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
        assert.deepInclude(broken.calls.at(-1), { reason: "overflow", limit: 100, size: 120 })
      })
  )

  it.effect("counts in the usage of the run and in its report, and in no turn", () =>
    Effect.gen(function* () {
      const { layer } = manager(["threshold"])
      const answer = ScriptedProvider.text("done", { usage: { input: 10, output: 1 } })
      const script = yield* agent([answer], { messages: history }).pipe(Effect.provide(layer))
      const { report, usage } = yield* script.agent.prompt("hi")
      assert.deepInclude(usage, { total: 44, cost: 0.25 })
      assert.strictEqual(report.usage.total, 44)
      assert.strictEqual(ofTag(script.events, "TurnEnd")[0]?.usage.total, 11)
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("is what later runs of the agent start from, until the messages are replaced", () =>
    Effect.gen(function* () {
      let isDue = true
      const { calls, layer } = manager(["threshold"], undefined, () => (isDue ? 100 : 0))
      const only = managing((conversation, trigger) =>
        Effect.map(
          Effect.flatMap(
            ContextManager.ContextManager,
            ({ compact }) => compact?.(conversation, trigger) ?? Effect.undefined
          ).pipe(Effect.provide(layer)),
          (plan) => (isDue ? plan : undefined)
        )
      )
      const script = yield* agent([done, done, done], { messages: history }).pipe(Effect.provide(only))
      const { compaction } = yield* script.agent.prompt("hi")
      isDue = false
      assert.strictEqual(compaction?.summary, "They talked.")
      assert.deepStrictEqual((yield* script.agent.state.get).compaction, compaction)
      yield* script.agent.prompt("more")
      const requests = yield* script.requests
      assert.deepStrictEqual(sent(requests[1]?.messages), ["q0", "They talked.", "hi", "done", "more"])
      // The same objects, so that providers find their encodings again.
      for (const [index, message] of (requests[0]?.messages ?? []).entries()) {
        assert.strictEqual(requests[1]?.messages[index], message)
      }
      assert.strictEqual((yield* script.agent.state.get).messages.length, 10)
      yield* script.agent.setMessages(history)
      assert.isUndefined((yield* script.agent.state.get).compaction)
      yield* script.agent.prompt("again")
      assert.strictEqual((yield* script.requests)[2]?.messages.length, 7)
      assert.isUndefined(calls.at(-1)?.compaction)
    })
  )

  it.effect("can be given to an agent and to a loop that continue the conversation elsewhere", () =>
    Effect.gen(function* () {
      const compaction = { summary: "They talked.", firstKept: history[4]?.id ?? "" }
      const expected = ["q0", "They talked.", "q2", "xxxxxxxxxxxx", "hi"]
      const script = yield* agent([done], { messages: history, compaction })
      yield* script.agent.prompt("hi")
      assert.deepStrictEqual(sent((yield* script.requests)[0]?.messages), expected)
      assert.deepStrictEqual((yield* script.agent.state.get).compaction, compaction)
      const provider = yield* ScriptedProvider.make([done])
      const result = yield* Loop.run("hi", { messages: history, compaction }, { model: "m" }).pipe(
        Effect.provide([provider.layer, ToolRegistry.layer()])
      )
      assert.deepStrictEqual(sent((yield* provider.requests)[0]?.messages), expected)
      assert.deepStrictEqual(result.compaction, compaction)
      yield* script.agent.reset
      assert.isUndefined((yield* script.agent.state.get).compaction)
    })
  )

  it.effect(
    "is planned with the answer that measures the conversation, which is none after a compaction",
    () =>
      Effect.gen(function* () {
        let due = 0
        const measured: Array<string | undefined> = []
        const layer = managing((conversation, { reason }) =>
          Effect.sync(() => {
            measured.push(conversation.measured && Message.textOf(conversation.measured))
            return reason === "threshold" && ++due === 3 ? planOf(conversation, 50) : undefined
          })
        )
        const answer = (text: string) => ScriptedProvider.text(text, { usage: { input: 10, output: 1 } })
        const script = yield* agent([answer("1"), done, answer("3"), answer("4")]).pipe(Effect.provide(layer))
        for (const text of ["a", "b", "c", "d"]) yield* script.agent.prompt(text)
        assert.deepStrictEqual(measured, [undefined, "1", "1", "3"])
      })
  )

  it.effect(
    "that fails is an event, is tried again when the conversation has grown by a tenth, and the run goes on",
    () =>
      Effect.gen(function* () {
        const sizes = [100, 109, 110, 120]
        const { layer } = manager(["threshold"], Effect.fail("no luck"), () => sizes.shift() ?? 0)
        const call = ScriptedProvider.toolCall("a", {})
        const { events, view } = yield* play([call, call, call, done], {
          tools: [say("a")],
          messages: history,
          layer
        })
        assert.strictEqual(view.status, "completed")
        // Not at 109, and not at 120.
        assert.deepStrictEqual(
          ofTag(events, "Compaction").map(({ status, tokensBefore, error }) => [
            status,
            tokensBefore,
            error?.message
          ]),
          [
            ["start", 100, undefined],
            ["failed", 100, "The conversation was not compacted: no luck"],
            ["start", 110, undefined],
            ["failed", 110, "The conversation was not compacted: no luck"]
          ]
        )
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
  )

  it.effect(
    "measures by no answer before a compaction, no answer that it was given, and none that failed",
    () =>
      Effect.gen(function* () {
        const measuring = (due: number) => {
          let calls = 0
          const measured: Array<string | undefined> = []
          const layer = managing((conversation, { reason }) =>
            Effect.sync(() => {
              measured.push(conversation.measured && Message.textOf(conversation.measured))
              return reason === "threshold" && ++calls === due ? planOf(conversation, 50) : undefined
            })
          )
          return { layer, measured }
        }
        const usage = Usage.make({ input: 10, output: 1 })
        const before = [
          Message.user("a"),
          Message.assistant("1", { usage }),
          Message.user("b"),
          Message.assistant(long)
        ]
        const compacted = measuring(1)
        const script = yield* agent([done, done], { messages: before }).pipe(Effect.provide(compacted.layer))
        for (const text of ["c", "d"]) yield* script.agent.prompt(text)
        assert.deepStrictEqual(compacted.measured, ["1", undefined])
        const given = measuring(0)
        const compaction = { summary: "They talked.", firstKept: before[2]?.id ?? "" }
        const other = yield* agent([done], { messages: before, compaction }).pipe(Effect.provide(given.layer))
        yield* other.agent.prompt("c")
        assert.deepStrictEqual(given.measured, [undefined])
        const failed = Message.assistant("half", { usage, stopReason: "error", errorMessage: "busy" })
        const broken = measuring(0)
        yield* play([done], { messages: [Message.user("a"), failed], layer: broken.layer })
        assert.deepStrictEqual(broken.measured, [undefined])
      })
  )

  it.effect("that succeeds, and one that a cancel ended, keep no later one from being tried", () =>
    Effect.gen(function* () {
      const sizes = [100, 120, 105]
      const ends = [Effect.fail("no luck"), undefined, undefined]
      const layer = managing((conversation) =>
        Effect.sync(() => planOf(conversation, sizes.shift() ?? 0, ends.shift()))
      )
      const script = yield* agent([ScriptedProvider.text(long), ScriptedProvider.text(long), done], {
        messages: history
      }).pipe(Effect.provide(layer))
      for (const text of ["a", "b", "c"]) yield* script.agent.prompt(text)
      assert.deepStrictEqual(
        ofTag(script.events, "Compaction").map(({ status, tokensBefore }) => `${status} ${tokensBefore}`),
        ["start 100", "failed 100", "start 120", "end 120", "start 105", "end 105"]
      )
      const began = yield* Latch.make(false)
      const summaries = [Effect.andThen(began.open, Effect.never), undefined]
      const cancelled = yield* agent([done], { messages: history }).pipe(
        Effect.provide(
          managing((conversation) => Effect.sync(() => planOf(conversation, 100, summaries.shift())))
        )
      )
      const run = yield* Effect.forkChild(cancelled.agent.prompt("hi"))
      yield* began.await
      yield* cancelled.agent.cancel()
      yield* Fiber.join(run)
      yield* cancelled.agent.continue
      assert.deepStrictEqual(
        ofTag(cancelled.events, "Compaction").map(({ status }) => status),
        ["start", "failed", "start", "end"]
      )
    })
  )

  it.effect("is not asked for by the run that makes the summary", () =>
    Effect.gen(function* () {
      const summarize = Loop.run("Sum up.", { messages: [] }, { model: "m" }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.map(({ text, usage }) => ({
          summary: text,
          firstKept: history[4]?.id ?? "",
          tokensAfter: 7,
          usage
        })),
        Effect.orDie
      )
      const { calls, layer } = manager(["threshold"], summarize)
      yield* play([ScriptedProvider.text("They talked."), done], { messages: history, layer })
      assert.strictEqual(calls.length, 1)
    })
  )

  it.effect("fails with a summary that is empty, or not shorter than what it stands for", () =>
    Effect.gen(function* () {
      for (const [summary, detail] of [
        [" \n", "the summary is empty"],
        ["y".repeat(20_000), "the conversation is no shorter with the summary"]
      ] as const) {
        const firstKept = history[4]?.id ?? ""
        const made = Effect.succeed({ summary, firstKept, tokensAfter: 7, usage: asked })
        const { events, requests } = yield* play([done], {
          messages: history,
          layer: manager(["threshold"], made).layer
        })
        assert.deepInclude(ofTag(events, "Compaction")[1], { status: "failed", usage: asked })
        assert.strictEqual(ofTag(events, "Compaction")[1]?.error?.detail, detail)
        assert.strictEqual(requests[0]?.messages.length, 7)
        assert.strictEqual(ofTag(events, "RunEnd")[0]?.usage.total, 33)
        assert.deepStrictEqual(Invariants.broken(events), [])
      }
    })
  )

  it.effect("that dies ends the run with its defect, balanced", () =>
    Effect.gen(function* () {
      const { layer } = manager(["threshold"], Effect.die(new Error("boom")))
      const { events, exit } = yield* play([done], { messages: history, layer })
      assert.deepStrictEqual(compactions(events), ["threshold start", "threshold failed"])
      assert.isTrue(Exit.hasDies(exit))
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("is interrupted when the run is cancelled, and ends with its event", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      let isInterrupted = false
      const hanging = Effect.andThen(began.open, Effect.never).pipe(
        Effect.onInterrupt(() => Effect.sync(() => (isInterrupted = true)))
      )
      const { layer } = manager(["threshold"], hanging)
      const script = yield* agent([done], { messages: history }).pipe(Effect.provide(layer))
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.cancel()
      assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
      assert.isTrue(isInterrupted)
      assert.deepStrictEqual(compactions(script.events), ["threshold start", "threshold failed"])
      assert.strictEqual(ofTag(script.events, "Compaction")[1]?.error?.detail, "the run was stopped")
      assert.strictEqual((yield* script.requests).length, 0)
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("is interrupted with the run after an answer to a request that was too large", () =>
    Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const { layer } = manager(["overflow"], Effect.andThen(began.open, Effect.never))
      const prices = Prices.layer({ m: { input: 1, output: 1, contextWindow: 100 } })
      const large = ScriptedProvider.text("cut", { usage: { input: 120, output: 1 } })
      const script = yield* agent([large], { messages: history }).pipe(
        Effect.provide(Layer.merge(layer, prices))
      )
      const run = yield* Effect.forkChild(script.agent.prompt("hi"))
      yield* began.await
      yield* script.agent.cancel()
      const { status, usage } = yield* Fiber.join(run)
      assert.deepStrictEqual([status, usage.total], ["cancelled", 121])
      assert.deepStrictEqual(compactions(script.events), ["overflow start", "overflow failed"])
      assert.deepStrictEqual(Invariants.broken(script.events), [])
    })
  )

  it.effect("counts in the budget of the run, whose model it may ask", () =>
    Effect.gen(function* () {
      const summarize = Loop.run("Sum up.", { messages: [] }, { model: "m" }).pipe(
        Effect.provide(ToolRegistry.layer()),
        Effect.map(({ text, usage }) => ({
          summary: text,
          firstKept: history[4]?.id ?? "",
          tokensAfter: 7,
          usage
        }))
      )
      const { layer } = manager(["threshold"], summarize)
      const summary = ScriptedProvider.text("short", { usage: { input: 900, output: 100 } })
      const { events, exit, requests } = yield* play([summary, done], {
        messages: history,
        layer,
        options: { limits: { maxTotalTokens: 1_000 } }
      })
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxTotalTokens", value: 1_000 })
      assert.strictEqual(requests.length, 1)
      assert.strictEqual(ofTag(events, "RunEnd")[0]?.usage.total, 1_000)
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  describe("by hand", () => {
    it.effect("is a run without turns", () =>
      Effect.gen(function* () {
        const { calls, layer } = manager(["manual"])
        const script = yield* agent([done], { messages: history, tools: [say("a")] }).pipe(
          Effect.provide(layer)
        )
        const result = yield* script.agent.compact("Keep the names.")
        assert.deepInclude(result, { status: "compacted", usage: asked })
        assert.deepInclude(result.compaction, { summary: "They talked.", tokensBefore: 100, tokensAfter: 7 })
        assert.deepStrictEqual(tags(script.events), ["RunStart", "Compaction", "Compaction", "RunEnd"])
        assert.deepStrictEqual(compactions(script.events), ["manual start", "manual end"])
        assert.strictEqual(ofTag(script.events, "Compaction")[1]?.entryId, result.compaction?.entryId)
        assert.deepInclude(calls[0], { reason: "manual", instructions: "Keep the names." })
        assert.deepStrictEqual(
          calls[0]?.request.tools.map(({ name }) => name),
          ["a"]
        )
        assert.deepStrictEqual(Invariants.broken(script.events), [])
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(sent((yield* script.requests)[0]?.messages), [
          "q0",
          "They talked.",
          "q2",
          "xxxxxxxxxxxx",
          "hi"
        ])
      })
    )

    it.effect("says that nothing is left to compact", () =>
      Effect.gen(function* () {
        const script = yield* agent([]).pipe(Effect.provide(manager(["manual"]).layer))
        assert.deepInclude(yield* script.agent.compact(), { status: "nothing" })
        assert.deepStrictEqual(tags(script.events), ["RunStart", "RunEnd"])
      })
    )

    it.effect("fails typed: without a manager, when the summary fails, during a run, after the end", () =>
      Effect.gen(function* () {
        const plain = yield* agent([])
        const failure = yield* Effect.flip(plain.agent.compact())
        assert.match(String(failure.message), /no context manager compacts here/)
        assert.deepNestedInclude(failure, { _tag: "RunFailed", "reason._tag": "CompactionFailed" })

        const unlucky = yield* agent([], { messages: history }).pipe(
          Effect.provide(manager(["manual"], Effect.fail("no luck")).layer)
        )
        const unluck = yield* Effect.flip(unlucky.agent.compact())
        assert.instanceOf(unluck, Run.RunFailed)
        assert.deepStrictEqual(compactions(unlucky.events), ["manual start", "manual failed"])
        assert.deepStrictEqual(Invariants.broken(unlucky.events), [])

        const busy = yield* agent([ScriptedProvider.never])
        yield* busy.agent.start("hi")
        assert.instanceOf(yield* Effect.flip(busy.agent.compact()), Agent.AgentBusy)

        const closed = yield* Effect.scoped(agent([]))
        assert.instanceOf(yield* Effect.flip(closed.agent.compact()), Agent.AgentClosed)
      })
    )

    it.effect("can be cancelled", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const { layer } = manager(["manual"], Effect.andThen(began.open, Effect.never))
        const script = yield* agent([], { messages: history }).pipe(Effect.provide(layer))
        const compacting = yield* Effect.forkChild(script.agent.compact())
        yield* began.await
        yield* script.agent.cancel()
        assert.deepInclude(yield* Fiber.join(compacting), { status: "cancelled" })
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )
  })

  describe("hooks around it", () => {
    const steps = (seen: Array<unknown>) => [
      Hook.beforeCompaction((input) => Effect.sync(() => void seen.push(["before", input]))),
      Hook.afterCompaction((input) => Effect.sync(() => void seen.push(["after", input])))
    ]

    it.effect("get its reason, its tokens and the messages, then its summary and its counts (row 135)", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const slow = Effect.delay(
          Effect.succeed({
            summary: "They talked.",
            firstKept: history[4]?.id ?? "",
            tokensAfter: 7,
            usage: asked
          }),
          "2 seconds"
        )
        const { layer } = manager(["threshold"], slow)
        const script = yield* agent([done], {
          messages: history,
          system: "Be brief.",
          tools: [say("a")],
          hooks: steps(seen)
        }).pipe(Effect.provide(layer))
        yield* script.agent.subscribe((event) =>
          Effect.sync(() => event._tag === "Compaction" && void seen.push([event.status, event.entryId]))
        )
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* settle()
        yield* TestClock.adjust("2 seconds")
        const { runId } = yield* Fiber.join(run)
        const [before, start, end, after] = seen.map((step) => (Array.isArray(step) ? step : []))
        const common = {
          runId,
          turn: 1,
          model: "m",
          system: "Be brief.",
          reason: "threshold",
          tokensBefore: 100
        }
        assert.deepInclude(before?.[1], common)
        assert.notProperty(before?.[1], "instructions")
        assert.strictEqual(before?.[1].messages.length, 7)
        assert.strictEqual(before?.[1].tools.length, 1)
        assert.deepInclude(after?.[1], {
          ...common,
          summary: "They talked.",
          firstKept: history[4]?.id,
          entryId: end?.[1],
          summarized: 3,
          tokensAfter: 7,
          usage: asked,
          durationMs: 2_000
        })
        assert.deepStrictEqual(
          [before?.[0], start?.[0], end?.[0], after?.[0]],
          ["before", "start", "end", "after"]
        )
      })
    )

    it.effect("skip it: the request has the whole conversation, and the next one asks again (row 135)", () =>
      Effect.gen(function* () {
        const { layer } = manager(["threshold"])
        const turns: Array<string> = []
        const hooks = [
          Hook.beforeCompaction(({ turn }) =>
            Effect.sync(() => {
              turns.push(`first ${turn}`)
              return { skip: turn === 1, reason: "not now" }
            })
          ),
          Hook.beforeCompaction(({ turn }) => Effect.sync(() => void turns.push(`second ${turn}`))),
          Hook.afterCompaction(({ turn }) => Effect.sync(() => void turns.push(`after ${turn}`)))
        ]
        const { events, requests, view } = yield* play([ScriptedProvider.toolCall("a", {}), done], {
          messages: history,
          layer,
          hooks,
          tools: [say("a")]
        })
        assert.deepStrictEqual(turns, ["first 1", "first 2", "second 2", "after 2"])
        assert.strictEqual(requests[0]?.messages.length, 7)
        assert.strictEqual(sent(requests[1]?.messages)[1], "They talked.")
        assert.deepStrictEqual(compactions(events), ["threshold start", "threshold end"])
        assert.strictEqual(view.status, "completed")
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("skip it where the run cannot do without: it fails with the error that it has (row 135)", () =>
      Effect.gen(function* () {
        const seen: Array<Hook.Input<"beforeCompaction">> = []
        const skip = Hook.beforeCompaction((input) =>
          Effect.sync(() => {
            seen.push(input)
            return { skip: true, reason: "the notes are not saved" }
          })
        )
        const { layer } = manager(["overflow", "manual"])
        const overflow = ScriptedProvider.fail(new ProviderError.ContextOverflow({ detail: "too long" }))
        const played = yield* play([overflow], { messages: history, layer, hooks: [skip] })
        const reason = reasonOf(played.exit)
        assert.strictEqual(reason?._tag === "ProviderError" && reason.reason._tag, "ContextOverflow")
        assert.deepStrictEqual(compactions(played.events), [])
        const script = yield* agent([], { messages: history, hooks: [skip] }).pipe(Effect.provide(layer))
        const failure = yield* Effect.flip(script.agent.compact("Keep the names."))
        assert.include(failure.message, "the notes are not saved")
        assert.deepNestedInclude(failure, { _tag: "RunFailed", "reason._tag": "CompactionFailed" })
        assert.deepStrictEqual(
          seen.map(({ instructions, reason, turn }) => [reason, turn, instructions]),
          [
            ["overflow", 1, undefined],
            ["manual", 0, "Keep the names."]
          ]
        )
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )

    it.effect("are observers: one that fails changes nothing, or fails the run in mode fail (row 135)", () =>
      Effect.gen(function* () {
        const { layer } = manager(["threshold"])
        for (const make of [Hook.beforeCompaction, Hook.afterCompaction]) {
          const hook = make(() => Effect.fail("offline"))
          const warned = yield* play([done], { messages: history, layer, hooks: [hook] })
          assert.deepInclude(ofTag(warned.events, "HookError")[0], { hook: hook.point, error: "offline" })
          assert.deepStrictEqual(compactions(warned.events), ["threshold start", "threshold end"])
          assert.strictEqual(warned.view.status, "completed")
          const options = { hookFailureMode: "fail" } as const
          const failed = yield* play([done], { messages: history, layer, hooks: [hook], options })
          assert.deepInclude(reasonOf(failed.exit), { _tag: "HookFailed", hook: hook.point })
          assert.deepStrictEqual(Invariants.broken(failed.events), [])
        }
      })
    )

    it.effect("are not called where none is due, nor after one that failed (row 135)", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        yield* play([done], { messages: history, layer: manager([]).layer, hooks: steps(seen) })
        assert.deepStrictEqual(seen, [])
        const { layer } = manager(["threshold"], Effect.fail("no luck"))
        yield* play([done], { messages: history, layer, hooks: steps(seen) })
        assert.strictEqual(seen.length, 1)
      })
    )

    it.effect("do not keep a cancel waiting", () =>
      Effect.gen(function* () {
        const { layer } = manager(["threshold"])
        for (const make of [Hook.beforeCompaction, Hook.afterCompaction]) {
          const began = yield* Latch.make(false)
          const hook = make(() => Effect.andThen(began.open, Effect.never))
          const script = yield* agent([done], { messages: history, hooks: [hook] }).pipe(
            Effect.provide(layer)
          )
          const run = yield* script.agent.start("hi")
          yield* began.await
          yield* settle()
          yield* run.cancel()
          assert.strictEqual((yield* run.result).status, "cancelled")
          assert.deepStrictEqual(Invariants.broken(script.events), [])
        }
      })
    )
  })
})
