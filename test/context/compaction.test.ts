import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Layer } from "effect"
import { Agent, Hook, Message, Prices, Provider, ProviderError, Tool, Transcript } from "effect-agent"
import { Compaction, Pruning } from "effect-agent/context"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "../behaviour/invariants.ts"
import { agent, ofTag, play, range, reasonOf, say, texts } from "../behaviour/play.ts"
import { seeds, transcript } from "./transcripts.ts"

const done = ScriptedProvider.text("done")
const short = ScriptedProvider.text("A short summary.", { usage: { input: 700, output: 70, cost: 0.5 } })
const overflow = (limit?: number) =>
  ScriptedProvider.fail(
    new ProviderError.ContextOverflow({ detail: "too long", ...(limit === undefined ? {} : { limit }) })
  )

/** So many turns of so many tokens each. */
const talk = (turns: number, tokens = 1_000) =>
  range(turns).flatMap((n) => [
    Message.user(`q${n}`),
    Message.assistant(`a${n} ${"x".repeat(tokens * 4 - 8)}`)
  ])

const compaction = (options: Compaction.Options = {}) =>
  Compaction.layer({ contextWindow: 12_000, ...options })

const compactions = (events: Parameters<typeof Invariants.broken>[0]) =>
  ofTag(events, "Compaction").map(({ reason, status }) => `${reason} ${status}`)

/** The last lines of the texts of a request, the first characters of each. */
const sent = (request: Provider.ModelRequest | undefined) =>
  texts(request?.messages ?? []).map((text) => (text.split("\n").at(-1) ?? "").slice(0, 16).trim())

describe("Compaction", () => {
  it.effect(
    "is due when less than the reserve is free, and keeps the task and the newest turns (row 184)",
    () =>
      Effect.gen(function* () {
        // A sixth of 12,000 is the reserve, an eighth stays.
        const early = yield* play([done], { messages: talk(8), layer: compaction() })
        assert.deepStrictEqual(compactions(early.events), [])
        const { events, requests } = yield* play([short, done], { messages: talk(10), layer: compaction() })
        assert.deepStrictEqual(compactions(events), ["threshold start", "threshold end"])
        assert.deepStrictEqual(sent(requests[1]), ["q0", "A short summary.", "q9", "a9 xxxxxxxxxxxxx", "hi"])
        assert.deepStrictEqual(Transcript.violations(requests[1]?.messages ?? []), [])
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
  )

  it.effect(
    "goes by the reserve, the tokens to keep and the window that the application names (row 185)",
    () =>
      Effect.gen(function* () {
        const options = { reserve: 1_000, keepRecent: 3_050 }
        const later = yield* play([done], { messages: talk(10), layer: compaction(options) })
        assert.deepStrictEqual(compactions(later.events), [])
        const { requests } = yield* play([short, done], { messages: talk(12), layer: compaction(options) })
        assert.strictEqual(sent(requests[1])[2], "q9")
        const byModel = (model: string) => (model === "m" ? 7_000 : undefined)
        const small = yield* play([short, done], {
          messages: talk(6),
          layer: compaction({ contextWindow: byModel })
        })
        assert.strictEqual(small.requests.length, 2)
      })
  )

  it.effect(
    "goes by the context window of Prices, also for a router, and by 128,000 where none is known",
    () =>
      Effect.gen(function* () {
        const rates = { input: 1, output: 1, contextWindow: 12_000 }
        const known = (id: string, model: string) =>
          play([short, done], {
            messages: talk(10),
            options: { model },
            layer: Layer.merge(Compaction.layer(), Prices.layer({ [id]: rates }))
          })
        assert.strictEqual((yield* known("scripted/m", "m")).requests.length, 2)
        assert.strictEqual((yield* known("acme/m", "acme/m")).requests.length, 2)
        assert.strictEqual((yield* known("other", "m")).requests.length, 1)
        const long = yield* play([short, done], { messages: talk(10, 11_200), layer: Compaction.layer() })
        assert.strictEqual(long.requests.length, 2)
      })
  )

  it.effect("is measured by the usage of the last answer and by what came after it (row 187)", () =>
    Effect.gen(function* () {
      const answer = (input: number) => ScriptedProvider.text("ok", { usage: { input, output: 10 } })
      const usual = { messages: talk(3) }
      const script = yield* agent(
        [answer(9_000), answer(10_000), short, answer(2_000), answer(3_000)],
        usual
      ).pipe(Effect.provide(compaction()))
      for (const text of ["1", "2", "3"]) yield* script.agent.prompt(text)
      const [start, end] = ofTag(script.events, "Compaction")
      assert.isAtLeast(start?.tokensBefore ?? 0, 10_010)
      assert.isBelow(start?.tokensBefore ?? 0, 10_020)
      assert.isBelow(end?.tokensAfter ?? Infinity, 8_000)
      // The answers from before the compaction do not measure what is sent after it.
      yield* script.agent.prompt("4")
      assert.strictEqual(compactions(script.events).length, 2)
    })
  )

  it.effect(
    "counts the system prompt and the tools of a conversation that no answer has measured (row 187)",
    () =>
      Effect.gen(function* () {
        const { requests } = yield* play([short, done], {
          messages: talk(7),
          options: { system: "s".repeat(8_000) },
          tools: [
            Tool.make({ name: "t", description: "d".repeat(8_000), execute: () => Effect.succeed("") })
          ],
          layer: compaction()
        })
        assert.strictEqual(requests.length, 2)
      })
  )

  it.effect("asks without tools, hooks and options of the run, and sends what is summarized", () =>
    Effect.gen(function* () {
      const calls: Array<string> = []
      const long = `start ${"y".repeat(2_000)} end`
      const messages = [
        Message.user("The task"),
        Message.assistant(
          [
            { type: "toolCall", id: "c", name: "look", rawArguments: `{"at":"here"}`, params: { at: "here" } }
          ],
          { stopReason: "toolUse" }
        ),
        Message.toolResult({ id: "c", name: "look" }, long, { isError: true }),
        ...talk(10)
      ]
      const { requests } = yield* play([short, done], {
        messages,
        options: { system: "You code.", modelOptions: { toolChoice: "required", stop: ["x"] } },
        tools: [say("look")],
        hooks: [Hook.beforeModel(({ view }) => Effect.sync(() => void calls.push(String(view.length))))],
        layer: compaction({ modelOptions: { maxTokens: 50 }, maxResult: 100 })
      })
      const [summary] = requests
      assert.deepStrictEqual(summary?.tools, [])
      assert.deepStrictEqual(summary?.options, { maxTokens: 50 })
      assert.match(summary?.system ?? "", /^You summarize/)
      assert.strictEqual(calls.length, 1)
      const [text = ""] = texts(summary?.messages ?? [])
      assert.include(text, "<first_message>\nUser: The task\n</first_message>")
      assert.strictEqual(text.split("User: The task").length, 2)
      assert.include(text, `Assistant calls look: {"at":"here"}`)
      assert.include(text, "Result of look (failed): start yyy")
      assert.match(text, /\[1910 characters left out\]\n[y]+ end\n/)
      assert.notInclude(text, "q9")
    })
  )

  it.effect("passes its requests through the guard of the run", () =>
    Effect.gen(function* () {
      const checked: Array<string> = []
      const guard = Layer.succeed(Provider.Guard, {
        input: ({ request }) => Effect.sync(() => void checked.push(request.system ?? ""))
      })
      const { requests } = yield* play([short, done], {
        messages: talk(10),
        layer: Layer.merge(compaction({ prompt: "Summarize." }), guard)
      })
      assert.strictEqual(requests.length, 2)
      assert.deepStrictEqual(checked, ["Summarize.", ""])
    })
  )

  it.effect("leaves a lone turn that is longer than the window, whose run then ends typed", () =>
    Effect.gen(function* () {
      const { events, exit, requests } = yield* play(
        [ScriptedProvider.toolCall("log", {}), overflow(2_000), done],
        { tools: [say("log", "x".repeat(50_000))], layer: compaction({ contextWindow: 2_000 }) }
      )
      assert.strictEqual(requests.length, 2)
      assert.deepStrictEqual(compactions(events), [])
      assert.deepNestedInclude(reasonOf(exit), { _tag: "ProviderError", "reason._tag": "ContextOverflow" })
      assert.deepStrictEqual(
        ofTag(events, "ModelCallError").map(({ willRetry }) => willRetry),
        [false]
      )
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect(
    "summarizes the previous summary with the turns since, and gives the instructions of a hand (row 185)",
    () =>
      Effect.gen(function* () {
        const second = ScriptedProvider.text("Second.")
        const script = yield* agent([short, done, second], { messages: talk(10) }).pipe(
          Effect.provide(compaction())
        )
        yield* script.agent.prompt("hi")
        const result = yield* script.agent.compact("Keep the numbers.")
        assert.deepInclude(result, { status: "compacted" })
        const [text = ""] = texts((yield* script.requests)[2]?.messages ?? [])
        assert.include(text, "<previous_summary>\nA short summary.\n</previous_summary>")
        assert.include(text, "Instructions for this summary: Keep the numbers.")
        assert.include(text, "User: q9")
        assert.notInclude(text, "User: q8")
        assert.strictEqual((yield* script.agent.state.get).compaction?.summary, "Second.")
      })
  )

  it.effect("uses a provider, a model and a prompt of its own", () =>
    Effect.gen(function* () {
      const own = yield* ScriptedProvider.make([short], { id: "own" })
      const layer = compaction({ provider: own.layer, model: "small", prompt: "Sum up." })
      const { events, requests } = yield* play([done], { messages: talk(10), layer })
      const [asked] = yield* own.requests
      assert.deepInclude(asked, { model: "small", system: "Sum up." })
      assert.strictEqual(requests.length, 1)
      assert.deepInclude(ofTag(events, "Compaction")[1]?.usage, { total: 770, cost: 0.5 })
      assert.deepInclude(ofTag(events, "RunEnd")[0]?.usage, { total: 770, cost: 0.5 })
    })
  )

  it.effect("summarizes in parts what the model that summarizes cannot read at once", () =>
    Effect.gen(function* () {
      const own = yield* ScriptedProvider.make([], {
        id: "own",
        exhausted: (_, call) => ScriptedProvider.text(`Part ${call}.`, { usage: { input: 10, output: 1 } })
      })
      const windowOf = (model: string) => (model === "tiny" ? 15_000 : 40_000)
      const layer = compaction({
        contextWindow: windowOf,
        provider: own.layer,
        model: "tiny",
        keepRecent: 1_100
      })
      const { events } = yield* play([done], { messages: talk(34), layer })
      const asked = (yield* own.requests).map(({ messages }) => texts(messages)[0] ?? "")
      assert.isAtLeast(asked.length, 3)
      for (const [index, text] of asked.entries()) {
        assert.isAtMost(text.length / 4, 15_000)
        if (index > 0) assert.include(text, `<previous_summary>\nPart ${index}.\n`)
      }
      for (const n of range(33)) assert.isTrue(asked.some((text) => text.includes(`a${n} x`)))
      assert.strictEqual(ofTag(events, "RunEnd")[0]?.usage.total, 11 * asked.length)
      assert.strictEqual(ofTag(events, "Compaction")[1]?.usage?.total, 11 * asked.length)
    })
  )

  describe("after ContextOverflow", () => {
    it.effect(
      "compacts once and asks again, and keeps less where the provider names its limit (row 184)",
      () =>
        Effect.gen(function* () {
          const own = yield* ScriptedProvider.make([], { exhausted: () => short })
          const { events, requests } = yield* play([overflow(4_000), done], {
            messages: talk(10),
            layer: Compaction.layer({ provider: own.layer })
          })
          assert.deepStrictEqual(compactions(events), ["overflow start", "overflow end"])
          assert.deepStrictEqual(sent(requests[1]), ["q0", "A short summary.", "hi"])
          assert.deepStrictEqual(Invariants.broken(events), [])
        })
    )

    it.effect.each([[2_000], [undefined]])(
      "summarizes in parts that the model takes, where it names the limit %s",
      ([limit]) =>
        Effect.gen(function* () {
          // Its tokens are shorter than those of the estimate.
          const size = ({ messages }: Provider.ModelRequest) => texts(messages).join("").length / 3
          const provider = yield* ScriptedProvider.make([], {
            exhausted: (request) =>
              size(request) > 2_000
                ? overflow(limit)
                : texts(request.messages)[0]?.includes("Write the summary.") === true
                  ? short
                  : done
          })
          const { events, exit } = yield* play([], {
            messages: talk(12, 400),
            around: () => provider.layer,
            layer: Compaction.layer()
          })
          assert.isTrue(Exit.isSuccess(exit))
          assert.deepStrictEqual(compactions(events), ["overflow start", "overflow end"])
          const last = sent((yield* provider.requests).at(-1))
          assert.deepStrictEqual([last[0], last[1], last.at(-1)], ["q0", "A short summary.", "hi"])
          assert.deepStrictEqual(Invariants.broken(events), [])
        })
    )

    it.effect.each([
      [undefined, "A short summary."],
      [50_000, "a0 xxxxxxxxxxxxx"]
    ] as const)(
      "follows an answer to a request larger than the price list says, unless the window %s that it was given is larger",
      ([contextWindow, second]) =>
        Effect.gen(function* () {
          const large = ScriptedProvider.text("taken", { usage: { input: 20_000, output: 1 } })
          const script = contextWindow === undefined ? [large, short, short, done] : [large]
          const { events, exit, requests } = yield* play(script, {
            messages: talk(4),
            layer: Layer.merge(
              Compaction.layer(contextWindow === undefined ? {} : { contextWindow }),
              Prices.layer({ m: { input: 1, output: 1, contextWindow: 12_000 } })
            )
          })
          assert.isTrue(Exit.isSuccess(exit))
          assert.strictEqual(sent(requests.at(-1))[1], second)
          assert.strictEqual(compactions(events).length, contextWindow === undefined ? 2 : 0)
          assert.deepStrictEqual(Invariants.broken(events), [])
        })
    )

    it.effect("summarizes a first message too that fills more than half of the window, from then on", () =>
      Effect.gen(function* () {
        const size = ({ messages }: Provider.ModelRequest) => texts(messages).join("").length / 4
        const provider = yield* ScriptedProvider.make([], {
          exhausted: (request) =>
            size(request) > 2_000
              ? overflow(2_000)
              : texts(request.messages)[0]?.includes("Write the summary.") === true
                ? short
                : done
        })
        const made = yield* Agent.make({ model: "m" }).pipe(
          Effect.provide([provider.layer, Compaction.layer()])
        )
        const requests = Effect.map(provider.requests, (all) => sent(all.at(-1)))
        assert.strictEqual(
          reasonOf(yield* Effect.exit(made.prompt("x".repeat(12_000))))?._tag,
          "ProviderError"
        )
        assert.strictEqual((yield* made.prompt("now")).text, "done")
        assert.deepStrictEqual(yield* requests, ["A short summary.", "now"])
        for (const n of range(4)) yield* made.prompt(`${n} ${"y".repeat(3_000)}`)
        assert.strictEqual((yield* made.prompt("and now")).text, "done")
        assert.strictEqual((yield* requests)[0], "A short summary.")
        assert.strictEqual((yield* requests).at(-1), "and now")
      })
    )

    it.effect("asks no further when the summary has spent what the run may spend", () =>
      Effect.gen(function* () {
        const { events, exit, requests } = yield* play([overflow(), short, done], {
          messages: talk(20),
          options: { limits: { maxTotalTokens: 700 } },
          layer: Compaction.layer()
        })
        assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", limit: "maxTotalTokens", value: 770 })
        assert.strictEqual(requests.length, 2)
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("compacts no second time for it", () =>
      Effect.gen(function* () {
        const { events, exit, requests } = yield* play([overflow(), short, overflow(), short, done], {
          messages: talk(20),
          layer: Compaction.layer()
        })
        assert.deepNestedInclude(reasonOf(exit), { _tag: "ProviderError", "reason._tag": "ContextOverflow" })
        assert.strictEqual(requests.length, 3)
        assert.deepStrictEqual(compactions(events), ["overflow start", "overflow end"])
      })
    )

    it.effect("fails with it if the summary fails, or nothing can be left out", () =>
      Effect.gen(function* () {
        const refused = ScriptedProvider.fail(new ProviderError.InvalidRequest({ detail: "no" }))
        const failing = yield* play([overflow(), refused, done], {
          messages: talk(10),
          layer: Compaction.layer()
        })
        assert.deepStrictEqual(compactions(failing.events), ["overflow start", "overflow failed"])
        const alone = yield* play([overflow(), done], { layer: Compaction.layer() })
        assert.deepStrictEqual(compactions(alone.events), [])
        for (const { exit } of [failing, alone]) {
          assert.deepNestedInclude(reasonOf(exit), {
            _tag: "ProviderError",
            "reason._tag": "ContextOverflow"
          })
        }
      })
    )
  })

  describe("that fails", () => {
    const failed = (turn: ScriptedProvider.Turn, options: Compaction.Options = {}) =>
      Effect.map(
        play([turn, done], { messages: talk(10), layer: compaction(options) }),
        ({ events, requests }) => {
          assert.deepStrictEqual(compactions(events), ["threshold start", "threshold failed"])
          assert.strictEqual(ofTag(events, "RunEnd")[0]?.status, "completed")
          assert.strictEqual(requests.at(-1)?.messages.length, 21)
          assert.deepStrictEqual(Invariants.broken(events), [])
          const { error, usage } = ofTag(events, "Compaction")[1] ?? {}
          return { error, usage }
        }
      )

    it.effect("leaves the run as it is, with the reason in its event", () =>
      Effect.gen(function* () {
        const usage = { input: 5, output: 1 }
        const busy = yield* failed(ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" })))
        assert.deepNestedInclude(busy.error, {
          "reason._tag": "ProviderError",
          "reason.reason._tag": "Overloaded"
        })
        const empty = yield* failed(ScriptedProvider.text(" ", { usage }))
        assert.strictEqual(empty.error?.detail, "the summary is empty")
        assert.strictEqual(empty.usage?.total, 6)
        const long = yield* failed(ScriptedProvider.text("z".repeat(90_000), { usage }))
        assert.match(long.error?.detail ?? "", /no shorter/)
        assert.strictEqual(long.usage?.total, 6)
        for (const stopReason of ["length", "refusal", "contentFilter"] as const) {
          const cut = yield* failed(ScriptedProvider.text("We", { usage, stopReason }))
          assert.strictEqual(cut.error?.detail, `the summary ended early: ${stopReason}`)
        }
      })
    )

    it.effect("for its own budget ends where that is spent", () =>
      Effect.gen(function* () {
        const dear = ScriptedProvider.turn(
          Step.start,
          Step.text(range(4_000).map(() => "long text ")),
          Step.finish()
        )
        const { error } = yield* failed(dear, { limits: { maxTotalTokens: 5_000 } })
        assert.deepNestedInclude(error, { "reason._tag": "LimitExceeded", "reason.limit": "maxTotalTokens" })
      })
    )

    it.effect("is not tried at each request, but again when the conversation has grown by a tenth", () =>
      Effect.gen(function* () {
        const asked: Array<boolean> = []
        const provider = yield* ScriptedProvider.make([], {
          exhausted: ({ system }) => {
            asked.push(system !== undefined)
            return system === undefined
              ? ScriptedProvider.toolCall("look", {})
              : ScriptedProvider.fail(new ProviderError.InvalidRequest({ detail: "no" }))
          }
        })
        const made = yield* Agent.make({
          model: "m",
          tools: [say("look", "x".repeat(1_000))],
          messages: talk(10),
          limits: { maxTurns: 10, onMaxTurns: "stop", maxIdenticalToolCalls: Infinity }
        }).pipe(Effect.provide([provider.layer, compaction()]))
        yield* made.prompt("hi")
        // Each turn adds about 253 tokens to some 10,000.
        assert.deepStrictEqual(asked.filter((isSummary) => isSummary).length, 3)
      })
    )

    it.effect("by a cancel is interrupted", () =>
      Effect.gen(function* () {
        const began = yield* Latch.make(false)
        const hanging = ScriptedProvider.turn(Step.start, Step.text("We"), Step.run(began.open), Step.never)
        const script = yield* agent([hanging], { messages: talk(10) }).pipe(Effect.provide(compaction()))
        const run = yield* Effect.forkChild(script.agent.prompt("hi"))
        yield* began.await
        yield* script.agent.cancel()
        assert.strictEqual((yield* Fiber.join(run)).status, "cancelled")
        assert.deepStrictEqual(compactions(script.events), ["threshold start", "threshold failed"])
        assert.deepStrictEqual(Invariants.broken(script.events), [])
      })
    )
  })

  it.effect("counts once in the run around an agent that compacts within a tool", () =>
    Effect.gen(function* () {
      const inner = yield* ScriptedProvider.make([
        short,
        ScriptedProvider.text("ok", { usage: { input: 9, output: 1 } })
      ])
      const sub = Tool.make({
        name: "sub",
        description: "Asks another agent.",
        execute: () =>
          Effect.gen(function* () {
            const agent = yield* Agent.make({ model: "m", messages: talk(10) })
            return (yield* agent.prompt("hi")).usage.total
          }).pipe(Effect.scoped, Effect.provide([inner.layer, compaction()]), Effect.orDie)
      })
      const usage = { input: 1, output: 1 }
      const { exit } = yield* play([ScriptedProvider.toolCall("sub", {}, { usage }), done], {
        tools: [sub],
        options: { limits: { maxTotalTokens: 782 } }
      })
      // 2 of the call, 780 within the tool: just what is allowed.
      assert.deepInclude(reasonOf(exit), { _tag: "LimitExceeded", value: 782 })
    })
  )

  it.effect("by hand finds nothing to compact in a short conversation, and compacts any other", () =>
    Effect.gen(function* () {
      const script = yield* agent([short], { messages: talk(1) }).pipe(Effect.provide(compaction()))
      assert.strictEqual((yield* script.agent.compact()).status, "nothing")
      const longer = yield* agent([short], { messages: talk(4) }).pipe(Effect.provide(compaction()))
      assert.strictEqual((yield* longer.agent.compact()).status, "compacted")
      assert.strictEqual((yield* longer.agent.compact()).status, "nothing")
    })
  )

  it.effect("cuts any transcript where a turn begins, alone and over pruned results", () =>
    Effect.gen(function* () {
      const small = { contextWindow: 2_000 }
      const pruned = compaction(small).pipe(Layer.provide(Pruning.layer({ budget: 200, keepTurns: 1 })))
      let compacted = 0
      for (const seed of seeds.slice(0, 25)) {
        const messages = transcript(seed)
        for (const layer of [compaction(small), pruned]) {
          const provider = yield* ScriptedProvider.make([], {
            exhausted: ({ system }) => (system === undefined ? done : short)
          })
          const made = yield* Effect.scoped(
            Effect.gen(function* () {
              const agent = yield* Agent.make({ model: "m", messages })
              return (yield* agent.prompt("hi")).compaction
            })
          ).pipe(Effect.provide([provider.layer, layer]))
          for (const { messages } of yield* provider.requests) {
            assert.deepStrictEqual(Transcript.violations(messages), [])
            assert.strictEqual(messages[0]?.role, "user")
          }
          if (made === undefined) continue
          compacted++
          const { messages: view } = Transcript.compacted(messages, made)
          assert.deepStrictEqual(Transcript.violations(view), [])
          const place = messages.findIndex(({ id }) => id === made.firstKept)
          assert.include([...Transcript.turnStarts([...messages, Message.user("hi")]), -1], place)
        }
      }
      assert.isAbove(compacted, 15)
    })
  )
})
