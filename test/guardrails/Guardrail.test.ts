import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  AgentEvent,
  ContextManager,
  Hook,
  Loop,
  Message,
  Run,
  Telemetry,
  Tool,
  ToolRegistry,
  Usage
} from "effect-agent"
import { Retry } from "effect-agent/resilience"
import { Guardrail } from "effect-agent/guardrails"
import { ScriptedProvider, Step } from "effect-agent/testing"
import { inspect } from "node:util"
import * as Invariants from "../behaviour/invariants.ts"
import { ofTag, play, reasonOf, say, settle, status, tags, texts } from "../behaviour/play.ts"
import { record } from "../telemetry/recorder.ts"

const done = ScriptedProvider.text("done")
const secret = "swordfish"
const word = Guardrail.stream({
  name: "word",
  check: ({ text }) => Effect.succeed(text.includes(secret) ? Guardrail.trip("a secret") : Guardrail.pass)
})
const noSecret = Guardrail.layer(
  Guardrail.input({
    name: "word",
    check: ({ news }) =>
      Effect.succeed(texts(news).includes(secret) ? Guardrail.trip("a secret") : Guardrail.pass)
  })
)
const wordOf = (verdict: Guardrail.Verdict, options: { readonly holdBack?: number } = {}) =>
  Guardrail.stream({
    name: "word",
    ...options,
    check: ({ text }) => Effect.succeed(text.includes(secret) ? verdict : Guardrail.pass)
  })
const tripped = (stage: "input" | "output", detail = "a secret", guard = "word") =>
  new Run.GuardrailTripped({ guard, stage, detail })
const shown = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.map((event) => (AgentEvent.isTextDelta(event) ? event.delta.delta : "")).join("")
const all = (value: unknown) =>
  inspect(value, { depth: 20, maxStringLength: Infinity, breakLength: Infinity })

describe("input guards", () => {
  it.effect("fail the run before the model is called", () =>
    Effect.gen(function* () {
      const seen: Array<Guardrail.Input> = []
      const { events, exit, requests } = yield* play([done], {
        messages: [Message.user("one"), Message.assistant("two")],
        prompt: "three",
        options: { system: "be brief" },
        layer: Guardrail.layer(
          Guardrail.input({
            name: "word",
            check: (input) => {
              seen.push(input)
              return Effect.succeed(Guardrail.trip("a secret"))
            }
          })
        )
      })
      assert.deepStrictEqual(reasonOf(exit), tripped("input"))
      assert.deepStrictEqual(requests, [])
      assert.deepStrictEqual(ofTag(events, "ModelCallStart"), [])
      assert.deepStrictEqual(Invariants.broken(events), [])
      assert.deepInclude(seen[0], { turn: 1, model: "m", system: "be brief" })
      assert.deepStrictEqual(
        seen.map(({ messages, news }) => [texts(messages), texts(news)]),
        [[["one", "two", "three"], ["three"]]]
      )
    })
  )

  it.effect("see the results of tools before the model does", () =>
    Effect.gen(function* () {
      const { exit, requests } = yield* play([ScriptedProvider.toolCall("page", {}), done], {
        tools: [say("page", secret)],
        layer: noSecret
      })
      assert.deepStrictEqual(reasonOf(exit), tripped("input"))
      assert.strictEqual(requests.length, 1)
    })
  )

  it.effect("keep what they refuse out of all later requests", () =>
    Effect.gen(function* () {
      const said = yield* ScriptedProvider.make([ScriptedProvider.toolCall("page", {}), done, done])
      const agent = yield* Agent.make({ model: "m", tools: [say("page", secret)] }).pipe(
        Effect.provide([said.layer, noSecret])
      )
      const refused = yield* Effect.exit(agent.prompt(secret))
      assert.deepStrictEqual(reasonOf(refused), tripped("input"))
      assert.strictEqual(reasonOf(yield* Effect.exit(agent.continue))?._tag, "InvalidTranscript")

      assert.deepStrictEqual(reasonOf(yield* Effect.exit(agent.prompt("read"))), tripped("input"))
      yield* agent.prompt("go on")
      yield* agent.prompt("and on")
      const [, second, third] = (yield* said.requests).map(({ messages }) => texts(messages))
      assert.deepStrictEqual(second, ["read", "", "No result of page was recorded.", "go on"])
      assert.deepStrictEqual(third, [...(second ?? []), "done", "and on"])

      const { messages } = yield* agent.state.get
      assert.deepStrictEqual(texts(messages), [
        secret,
        "",
        "",
        "read",
        "",
        secret,
        "",
        "go on",
        "done",
        "and on",
        "done"
      ])
    }).pipe(Effect.scoped)
  )

  it.effect("keep what they refuse out of compactions, and the summary before it in requests", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider.make([
        ScriptedProvider.text("a long answer ".repeat(50)),
        done
      ])
      const kept: Array<ContextManager.Conversation> = []
      const manager = Layer.succeed(ContextManager.ContextManager, {
        view: (messages) => Effect.succeed({ messages, dropped: 0, reason: "window" }),
        compact: (conversation) => {
          kept.push(conversation)
          const last = conversation.messages.at(-1)
          return Effect.succeed(
            kept.length !== 2 || last === undefined
              ? undefined
              : {
                  tokensBefore: 9,
                  summarize: Effect.succeed({ summary: "S", firstKept: last.id, tokensAfter: 1 })
                }
          )
        }
      } satisfies ContextManager.Service)
      const agent = yield* Agent.make({ model: "m" }).pipe(
        Effect.provide([provider.layer, noSecret, manager])
      )
      yield* agent.prompt("hi")
      yield* Effect.exit(agent.prompt(secret))
      yield* agent.prompt("go on")
      const [, { messages } = { messages: [] }] = yield* provider.requests
      assert.deepStrictEqual(
        texts(messages).map((text) => text.slice(-2)),
        ["hi", "\nS", "on"]
      )
      assert.deepStrictEqual(
        kept.map(({ messages }) => messages.length),
        [1, 3, 4]
      )
      assert.isFalse(texts(kept[2]?.messages ?? []).includes(secret))
    }).pipe(Effect.scoped)
  )

  it.effect("answer in place of the model", () =>
    Effect.gen(function* () {
      const { events, requests, view } = yield* play([done], {
        layer: Guardrail.layer(
          Guardrail.input({
            name: "closed",
            check: () => Effect.succeed(Guardrail.replace("We are closed."))
          })
        )
      })
      assert.deepStrictEqual(texts(view.messages), ["hi", "We are closed."])
      assert.strictEqual(status(events), "completed")
      assert.deepStrictEqual(requests, [])
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("of one layer run side by side; the first that trips interrupts the others", () =>
    Effect.gen(function* () {
      const begun = [yield* Deferred.make<void>(), yield* Deferred.make<void>()] as const
      let interrupted = false
      const first = Guardrail.input({
        name: "first",
        check: () =>
          Deferred.succeed(begun[0], undefined).pipe(
            Effect.andThen(Effect.never),
            Effect.onInterrupt(() => Effect.sync(() => void (interrupted = true)))
          )
      })
      const second = Guardrail.input({
        name: "second",
        check: () =>
          Effect.as(
            Effect.andThen(Deferred.succeed(begun[1], undefined), Deferred.await(begun[0])),
            Guardrail.trip("no")
          )
      })
      const { exit } = yield* play([done], { layer: Guardrail.layer(first, second) })
      assert.deepStrictEqual(reasonOf(exit), tripped("input", "no", "second"))
      assert.isTrue(interrupted)
    })
  )

  it.effect("that fail, die, are late or return something else stop the run, and are not quoted", () =>
    Effect.gen(function* () {
      class Unreachable extends Schema.TaggedError<Unreachable>()("Unreachable", { text: Schema.String }) {}
      const other: unknown = { _tag: "Allow" }
      const checks: ReadonlyArray<readonly [check: () => unknown, detail: string]> = [
        [() => Effect.fail(new Unreachable({ text: secret })), "it failed with Unreachable"],
        [() => Effect.fail(secret), "it failed with string"],
        [() => Effect.fail({ _tag: `not ${secret}` }), "it failed"],
        [() => Effect.die(new TypeError(secret)), "it failed with TypeError"],
        [() => Effect.succeed(other), "it returned no verdict"],
        [() => Effect.succeed({ _tag: "Trip", detail: 1 }), "it returned no verdict"],
        [() => Promise.resolve(Guardrail.pass), "it returned no Effect"],
        [
          () => {
            throw new RangeError(secret)
          },
          "it failed with RangeError"
        ],
        [() => Effect.never, "it took longer than 10s"]
      ]
      for (const [check, detail] of checks) {
        const guard: Guardrail.Guardrail<never> = Object.assign(
          Guardrail.input({ name: "word", check: () => Effect.succeed(Guardrail.pass) }),
          {
            check
          }
        )
        const fiber = yield* Effect.forkChild(play([done], { layer: Guardrail.layer(guard) }))
        yield* settle()
        yield* TestClock.adjust("10 seconds")
        const { events, exit, requests } = yield* Fiber.join(fiber)
        assert.deepStrictEqual(reasonOf(exit), tripped("input", detail))
        assert.notInclude(all(events), secret)
        assert.deepStrictEqual(requests, [])
      }
    })
  )

  it.effect("of nested layers all run, with the services of their layer", () =>
    Effect.gen(function* () {
      class Words extends Context.Service<Words, ReadonlyArray<string>>()("Words") {}
      const seen: Array<string> = []
      const guard = (name: string) =>
        Guardrail.input({
          name,
          check: () =>
            Effect.map(Words, (words) => {
              seen.push(`${name}: ${words.join()}`)
              return Guardrail.pass
            })
        })
      const layer = Guardrail.layer(guard("inner")).pipe(
        Layer.provide(Layer.succeed(Words, ["a"])),
        Layer.provide(Guardrail.layer(guard("outer")).pipe(Layer.provide(Layer.succeed(Words, ["b"]))))
      )
      yield* play([done], { layer })
      assert.deepStrictEqual(seen, ["outer: b", "inner: a"])
    })
  )

  it.effect("a guard that runs an agent does not check itself", () =>
    Effect.gen(function* () {
      let checks = 0
      const judge = Guardrail.input({
        name: "judge",
        check: Effect.fnUntraced(function* () {
          checks++
          const agent = yield* Agent.make({ model: "judge" })
          const { text } = yield* agent.prompt("Is it fine?")
          return text === "yes" ? Guardrail.pass : Guardrail.trip("the judge said no")
        }, Effect.scoped)
      })
      const layer = Guardrail.layer(judge).pipe(
        Layer.provide(ScriptedProvider.layer([ScriptedProvider.text("yes")]))
      )
      const { view } = yield* play([done], { layer })
      assert.strictEqual(texts(view.messages)[1], "done")
      assert.strictEqual(checks, 1)
    })
  )

  it.effect("a cancel ends the run while a guard works", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const guard = Guardrail.input({
        name: "slow",
        check: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      })
      const agent = yield* Agent.make({ model: "m" }).pipe(
        Effect.provide([ScriptedProvider.layer([done]), Guardrail.layer(guard)])
      )
      const fiber = yield* Effect.forkChild(agent.prompt("hi"))
      yield* Deferred.await(begun)
      yield* agent.cancel()
      assert.strictEqual((yield* Fiber.join(fiber)).status, "cancelled")
    })
  )
})

describe("no tool starts while a guard thinks", () => {
  const answer = ScriptedProvider.turn(
    Step.text("I will."),
    Step.toolCall("remove", { path: "/" }),
    Step.finish("toolUse")
  )

  it.effect("openai-agents-python#2688: a guard that trips late finds no tool started", () =>
    Effect.gen(function* () {
      for (const make of [Guardrail.output, Guardrail.stream]) {
        const thinking = yield* Deferred.make<void>()
        const decide = yield* Deferred.make<void>()
        let removed = 0
        const remove = Tool.make({
          name: "remove",
          description: "Removes a file.",
          execute: () => Effect.sync(() => ++removed)
        })
        const guard = make({
          name: "word",
          check: () =>
            Deferred.succeed(thinking, undefined).pipe(
              Effect.andThen(Deferred.await(decide)),
              Effect.as(Guardrail.trip("a secret"))
            )
        })
        const events: Array<AgentEvent.AgentEvent> = []
        const provider = yield* ScriptedProvider.make([answer, done])
        const fiber = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
          Stream.runForEach((event) => Effect.sync(() => events.push(event))),
          Effect.provide([provider.layer, ToolRegistry.layer(remove), Guardrail.layer(guard)]),
          Effect.exit,
          Effect.forkChild
        )
        yield* Deferred.await(thinking)
        yield* TestClock.adjust("9 seconds")
        assert.strictEqual(removed, 0)
        assert.notInclude(tags(events), "ToolsDetected")
        yield* Deferred.succeed(decide, undefined)
        assert.deepStrictEqual(reasonOf(yield* Fiber.join(fiber)), tripped("output"))
        assert.strictEqual(removed, 0)
        assert.notInclude(tags(events), "ToolExecutionStart")
        assert.deepStrictEqual(Invariants.broken(events), [])
      }
    })
  )

  it.effect("words in place of an answer keep its tools from running", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play([answer, done], {
        tools: [say("remove")],
        layer: Guardrail.layer(
          Guardrail.output({
            name: "no tools",
            check: ({ content }) =>
              Effect.succeed(
                content.some(({ type }) => type === "toolCall")
                  ? Guardrail.replace("I will not.")
                  : Guardrail.pass
              )
          })
        )
      })
      assert.deepStrictEqual(texts(view.messages), ["hi", "I will not."])
      assert.notInclude(tags(events), "ToolExecutionStart")
      assert.notInclude(all(events), "remove")
      assert.strictEqual(status(events), "completed")
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )
})

describe("stream guards", () => {
  const before = "The password that you are looking for is this one, as far as I know: "
  const after = ", and nothing else. ".repeat(20)
  const text = before + secret + after
  const pieces = (size: number) => text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []

  it.effect("a word split over deltas is not released, nor a part of it", () =>
    Effect.gen(function* () {
      for (const size of [1, 2, 3, 5, 8, 13, 40, 1_000]) {
        for (const holdBack of [18, 19, 64, 256]) {
          const { events, exit, view } = yield* play([ScriptedProvider.text(pieces(size))], {
            layer: Guardrail.layer(wordOf(Guardrail.trip("a secret"), { holdBack }))
          })
          assert.deepStrictEqual(reasonOf(exit), tripped("output"))
          assert.isTrue(before.startsWith(shown(events)))
          assert.isTrue(before.startsWith(texts(view.messages)[1] ?? "none"))
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      }
    })
  )

  it.effect("a holdBack that is no number withholds all", () =>
    Effect.gen(function* () {
      const script = [ScriptedProvider.turn(Step.text(pieces(4)), Step.finish())]
      const layer = Guardrail.layer(wordOf(Guardrail.trip("a secret"), { holdBack: Number.NaN }))
      const { events, exit } = yield* play(script, { layer })
      assert.deepStrictEqual(reasonOf(exit), tripped("output"))
      assert.strictEqual(shown(events), "")
    })
  )

  it.effect("text that passes arrives whole, in order, and no more than holdBack waits", () =>
    Effect.gen(function* () {
      const rest = before + "🎉".repeat(200) + after
      for (const [size, holdBack] of [
        [1, 0],
        [1, 1],
        [1, 2],
        [7, 64],
        [50, 256],
        [9_999, 256]
      ] as const) {
        const deltas = rest.match(new RegExp(`[^]{1,${size}}`, "gu")) ?? []
        let sent = 0
        let most = 0
        const steps = deltas.flatMap((delta) => [
          Step.event({ _tag: "TextDelta", contentIndex: 0, delta }),
          Step.run(Effect.sync(() => (sent += delta.length)))
        ])
        let got = ""
        const provider = yield* ScriptedProvider.make([ScriptedProvider.turn(...steps, Step.finish())])
        const agent = yield* Agent.make({ model: "m" }).pipe(
          Effect.provide([provider.layer, Guardrail.layer(wordOf(Guardrail.trip("a secret"), { holdBack }))])
        )
        yield* agent.subscribe((event) =>
          Effect.sync(() => {
            if (!AgentEvent.isTextDelta(event)) return
            got += event.delta.delta
            assert.isFalse(/[\ud800-\udbff]$/.test(event.delta.delta))
            most = Math.max(most, sent - got.length)
          })
        )
        const result = yield* agent.prompt("hi")
        assert.strictEqual(got, rest)
        assert.strictEqual(result.text, rest)
        assert.isAtMost(most, holdBack + 2)
      }
    })
  )

  it.effect("nothing of the withheld text reaches events, messages, the result or telemetry", () =>
    Effect.gen(function* () {
      const answers = [
        [Step.text(pieces(4))],
        [Step.thinking(pieces(4)), Step.text("fine")],
        [Step.text("fine"), Step.toolCall("send", { text })],
        [Step.rawToolCall("send", [`{"text": "`, text])]
      ]
      for (const verdict of [Guardrail.trip("a secret"), Guardrail.replace("I keep secrets.")]) {
        for (const answer of answers) {
          const steps = [...answer, Step.finish("stop", { input: 3, output: 4 })]
          const events: Array<AgentEvent.AgentEvent> = []
          const program = Effect.gen(function* () {
            const agent = yield* Agent.make({ model: "m", tools: [say("send")] })
            yield* agent.subscribe((event) => Effect.sync(() => events.push(event)))
            const exit = yield* Effect.exit(agent.prompt("hi"))
            return { exit: Exit.map(exit, (result) => result), state: yield* agent.state.get }
          }).pipe(
            Effect.scoped,
            Effect.provide([
              ScriptedProvider.layer([ScriptedProvider.turn(...steps), done]),
              Guardrail.layer(wordOf(verdict))
            ]),
            Effect.provideService(Telemetry.CaptureContent, true)
          )
          const recorded = yield* record(program)
          assert.notInclude(all([events, recorded]), secret)
          assert.deepStrictEqual(Invariants.broken(events), [])
          assert.strictEqual(status(events), verdict._tag === "Trip" ? "failed" : "completed")
        }
      }
    })
  )

  it.effect("words in place of an answer retract what others have seen of it; usage stays, tokens go", () =>
    Effect.gen(function* () {
      const usage = { input: 10, output: 20 }
      const logprobs = [{ token: secret, logprob: -1 }]
      const script = [
        ScriptedProvider.turn(
          Step.start,
          Step.text([...pieces(4), "."]),
          Step.event({ _tag: "Finish", stopReason: "length", usage: Usage.make(usage), logprobs })
        )
      ]
      const { events, exit, view } = yield* play(script, {
        layer: Guardrail.layer(
          Guardrail.stream({
            name: "word",
            // Sees the word only at the end.
            check: ({ text }) =>
              Effect.succeed(
                text.endsWith("..") || text.endsWith(" .") ? Guardrail.replace("Sorry.") : Guardrail.pass
              )
          })
        )
      })
      assert.isTrue(Exit.isSuccess(exit))
      assert.strictEqual(ofTag(events, "MessageRetracted").length, 1)
      assert.deepStrictEqual(texts(view.messages), ["hi", "Sorry."])
      assert.deepInclude(view.messages[1], { stopReason: "stop", provider: "scripted" })
      assert.deepInclude(ofTag(events, "RunEnd")[0]?.usage, usage)
      assert.isUndefined(ofTag(events, "ModelCallEnd")[0]?.logprobs)
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("an answer that a guard stopped at its end is paid for", () =>
    Effect.gen(function* () {
      const { events } = yield* play([ScriptedProvider.text(secret, { usage: { input: 7, output: 5 } })], {
        layer: Guardrail.layer(word)
      })
      assert.deepInclude(ofTag(events, "RunEnd")[0]?.usage, { input: 7, output: 5 })
    })
  )

  it.effect("an answer that a retry retracts is checked from its start again", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const script = [
        ScriptedProvider.turn(Step.start, Step.text("sword"), Step.eof),
        ScriptedProvider.turn(Step.start, Step.text("fish"), Step.finish())
      ]
      const fiber = yield* Effect.forkChild(
        play(script, {
          around: Retry.layer({ retryTurn: true }),
          layer: Guardrail.layer(
            Guardrail.stream({
              name: "word",
              check: ({ text }) => {
                seen.push(text)
                return Effect.succeed(text.includes(secret) ? Guardrail.trip("a secret") : Guardrail.pass)
              }
            })
          )
        })
      )
      yield* settle()
      yield* TestClock.adjust("1 minute")
      const { events, view } = yield* Fiber.join(fiber)
      assert.deepStrictEqual(seen, ["fish"])
      assert.deepStrictEqual(texts(view.messages), ["hi", "fish"])
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("text that waits when the model call breaks off is dropped", () =>
    Effect.gen(function* () {
      const { events, view } = yield* play(
        [ScriptedProvider.turn(Step.start, Step.text("sword"), Step.eof)],
        {
          layer: Guardrail.layer(word)
        }
      )
      assert.deepStrictEqual(texts(view.messages), ["hi", ""])
      assert.strictEqual(status(events), "failed")
      assert.notInclude(all(events), "sword")
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("arguments that a call ends with are checked, also where other ones streamed", () =>
    Effect.gen(function* () {
      const rawArguments = JSON.stringify({ path: secret })
      const script = [
        ScriptedProvider.turn(
          Step.start,
          Step.event({ _tag: "ToolCallStart", contentIndex: 0, id: "x", name: "a" }),
          Step.event({ _tag: "ToolCallDelta", contentIndex: 0, delta: "{}" }),
          Step.event({ _tag: "ToolCallEnd", contentIndex: 0, rawArguments }),
          Step.finish("toolUse")
        )
      ]
      const { events, exit } = yield* play(script, { tools: [say("a")], layer: Guardrail.layer(word) })
      assert.deepStrictEqual(reasonOf(exit), tripped("output"))
      assert.deepStrictEqual(ofTag(events, "ToolInvoked"), [])
    })
  )

  it.effect("arguments that a call ends with are released, also where longer ones streamed", () =>
    Effect.gen(function* () {
      const rawArguments = JSON.stringify({ path: "a" })
      const script = [
        ScriptedProvider.turn(
          Step.start,
          Step.event({ _tag: "ToolCallStart", contentIndex: 0, id: "x", name: "a" }),
          Step.event({ _tag: "ToolCallDelta", contentIndex: 0, delta: `${rawArguments}   ` }),
          Step.event({ _tag: "ToolCallEnd", contentIndex: 0, rawArguments }),
          Step.finish("toolUse")
        ),
        done
      ]
      const { events, exit } = yield* play(script, { tools: [say("a")], layer: Guardrail.layer(word) })
      assert.strictEqual(exit._tag, "Success")
      assert.lengthOf(ofTag(events, "ToolInvoked"), 1)
      assert.deepStrictEqual(Invariants.broken(events), [])
    })
  )

  it.effect("interleaved blocks keep their order, and calls run with the arguments that passed", () =>
    Effect.gen(function* () {
      const script = [
        ScriptedProvider.turn(
          Step.thinking("so"),
          Step.text("first"),
          Step.toolCall("a", { n: 1 }),
          Step.text("second"),
          Step.toolCall("b", {}),
          Step.finish("toolUse")
        ),
        done
      ]
      const parts: Array<readonly [string, string]> = []
      const guard = Guardrail.stream({
        name: "all",
        check: ({ kind, text }) => {
          parts.push([kind, text])
          return Effect.succeed(Guardrail.pass)
        }
      })
      const setup = { tools: [say("a"), say("b")] }
      const plain = yield* play(script, setup)
      const guarded = yield* play(script, { ...setup, layer: Guardrail.layer(guard) })
      const contentOf = ({ view }: { readonly view: AgentEvent.View }) =>
        view.messages.flatMap((message) => (message.role === "assistant" ? [message.content] : []))
      assert.deepStrictEqual(contentOf(guarded), contentOf(plain))
      assert.deepStrictEqual(Invariants.broken(guarded.events), [])
      assert.deepInclude(parts, ["arguments", '{"n":1}'])
      assert.deepInclude(parts, ["text", "firstsecond"])
      assert.deepInclude(parts, ["thinking", "so"])
    })
  )
})

describe("output guards", () => {
  it.effect("see the whole answer, of which others see nothing before", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const decide = yield* Deferred.make<void>()
      const seen: Array<Guardrail.Output> = []
      const guard = Guardrail.output({
        name: "whole",
        check: (output) =>
          Effect.gen(function* () {
            seen.push(output)
            yield* Deferred.succeed(begun, undefined)
            yield* Deferred.await(decide)
            return Guardrail.pass
          })
      })
      const events: Array<AgentEvent.AgentEvent> = []
      const script = [ScriptedProvider.text(["one ", "two ", "three"])]
      const fiber = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
        Stream.runForEach((event) => Effect.sync(() => events.push(event))),
        Effect.provide([ScriptedProvider.layer(script), ToolRegistry.layer(), Guardrail.layer(guard)]),
        Effect.forkChild
      )
      yield* Deferred.await(begun)
      assert.strictEqual(shown(events), "")
      assert.deepStrictEqual(
        seen.map(({ content, text }) => [text, content.length]),
        [["one two three", 1]]
      )
      yield* Deferred.succeed(decide, undefined)
      yield* Fiber.join(fiber)
      assert.strictEqual(shown(events), "one two three")
    })
  )

  it.effect("guard the typed output too, and every other provider, by the same layer", () =>
    Effect.gen(function* () {
      const agent = yield* Agent.make({ model: "m", output: Schema.Struct({ word: Schema.String }) })
      const error = yield* Effect.flip(agent.prompt("hi"))
      assert.strictEqual(error._tag === "RunFailed" ? error.reason._tag : "", "GuardrailTripped")
    }).pipe(
      Effect.scoped,
      Effect.provide([
        ScriptedProvider.layer([
          ScriptedProvider.toolCall("give_output", { word: secret }),
          ScriptedProvider.text(`{"word":"${secret}"}`)
        ]),
        Guardrail.layer(word)
      ])
    )
  )

  it.effect("a response of a hook does not go through them", () =>
    Effect.gen(function* () {
      const { view } = yield* play([done], {
        hooks: [Hook.beforeModel(() => Effect.succeed({ skip: true, response: secret }))],
        layer: Guardrail.layer(word)
      })
      assert.deepStrictEqual(texts(view.messages), ["hi", secret])
    })
  )
})
