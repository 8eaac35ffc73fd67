import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Latch, Layer, Stream } from "effect"
import { ContextManager, Hook, Loop, Message, ToolRegistry, Transcript } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import * as Invariants from "./invariants.ts"
import { agent, ofTag, play, range, reasonOf, resultTexts, say, settle, status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const history = range(6).flatMap((n) => [Message.user(`q${n}`), Message.assistant(`a${n}`)])
const calling = (...ids: ReadonlyArray<string>) =>
  Message.assistant(
    ids.map((id) => ({ type: "toolCall" as const, id, name: "t", rawArguments: "{}", params: {} })),
    { stopReason: "toolUse" }
  )
const resultFor = (id: string, text = "r") => Message.toolResult({ id, name: "t" }, text)

describe("View", () => {
  describe("window", () => {
    const windowed = (maxMessages: number, messages: ReadonlyArray<Message.Message>, keepFirstUser = false) =>
      play([done], { messages, layer: ContextManager.slidingWindow({ maxMessages, keepFirstUser }) })

    it.effect("holds for the first request too (row 177)", () =>
      Effect.gen(function* () {
        const { events, requests, view } = yield* windowed(5, history)
        assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["q4", "a4", "q5", "a5", "hi"])
        assert.deepInclude(ofTag(events, "ContextTransformed")[0], { dropped: 8, kept: 5, reason: "window" })
        assert.strictEqual(view.messages.length, 14)
      })
    )

    it.effect("is of 50 messages by default (row 172)", () =>
      Effect.gen(function* () {
        const messages = range(30).flatMap((n) => [Message.user(`q${n}`), Message.assistant(`a${n}`)])
        const { requests } = yield* play([done], { messages, layer: ContextManager.slidingWindow() })
        assert.strictEqual(requests[0]?.messages.length, 50)
        assert.strictEqual(texts(requests[0]?.messages ?? []).at(-1), "hi")
      })
    )

    it.effect("never splits a call from its result, even if one message were allowed (row 178)", () =>
      Effect.gen(function* () {
        for (const max of [0, 1, 2, 3]) {
          const { requests } = yield* play([call("a"), done], {
            tools: [say("a")],
            messages: history,
            layer: ContextManager.slidingWindow({ maxMessages: max })
          })
          const second = requests[1]?.messages ?? []
          assert.deepStrictEqual(Transcript.violations(second), [])
          assert.deepStrictEqual(resultTexts(second), ["a"])
        }
      })
    )

    it.effect("never begins with a result without its call (row 178)", () =>
      Effect.gen(function* () {
        const messages = [
          Message.user("q"),
          calling("x", "y", "z"),
          resultFor("x"),
          resultFor("y"),
          resultFor("z"),
          Message.assistant("a")
        ]
        for (const max of range(8)) {
          const { requests } = yield* windowed(max, messages)
          assert.notStrictEqual(requests[0]?.messages[0]?.role, "toolResult")
          assert.deepStrictEqual(Transcript.violations(requests[0]?.messages ?? []), [])
        }
      })
    )

    it.effect("keeps the first task if told to, and the system prompt always (row 179)", () =>
      Effect.gen(function* () {
        const { requests } = yield* windowed(3, history, true)
        assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["q0", "q5", "a5", "hi"].slice(0, 4))
      })
    )
  })

  it.effect("a hook that fails, dies or hangs while it shapes the request ends the run (row 85)", () =>
    Effect.gen(function* () {
      for (const point of [Hook.transformMessages, Hook.toModelMessages]) {
        const broken = [
          point(() => Effect.fail("broke")),
          point(() => Effect.die(new Error("broke"))),
          point(() => {
            throw new Error("broke")
          })
        ]
        for (const hook of broken) {
          const { events, exit, requests } = yield* play([done], { hooks: [hook] })
          assert.deepInclude(reasonOf(exit), { _tag: "TransformFailed", hook: hook.point, detail: "broke" })
          assert.strictEqual(requests.length, 0)
          assert.deepStrictEqual(Invariants.broken(events), [])
          assert.deepStrictEqual(tags(events).slice(-3), ["TurnEnd", "RunError", "RunEnd"])
        }
        const began = yield* Latch.make(false)
        const run = yield* Effect.forkChild(
          play([done], { hooks: [point(() => Effect.andThen(began.open, Effect.never))] })
        )
        yield* began.await
        yield* TestClock.adjust("5 seconds")
        const { exit } = yield* Fiber.join(run)
        assert.strictEqual(reasonOf(exit)?._tag, "TransformFailed")
      }
    })
  )

  it.effect(
    "is transformed, windowed, repaired, then made into model messages, in every turn (rows 85, 182)",
    () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const { requests, view } = yield* play([call("a"), done], {
          tools: [say("a")],
          messages: [...history, resultFor("orphan"), Message.custom("note", "keep it short")],
          layer: ContextManager.slidingWindow({ maxMessages: 4 }),
          hooks: [
            Hook.transformMessages(({ messages }) => {
              seen.push(["transform", messages.length])
              return Effect.succeed(messages.filter((message) => Message.textOf(message) !== "q5"))
            }),
            Hook.toModelMessages(({ messages }) => {
              seen.push(["model", messages.map(({ role }) => role)])
              return Effect.succeed(
                messages.map((message) =>
                  message.role === "custom" ? Message.user(`note: ${JSON.stringify(message.data)}`) : message
                )
              )
            })
          ]
        })
        assert.deepStrictEqual(seen, [
          ["transform", 15],
          ["model", ["assistant", "custom", "user"]],
          ["transform", 17],
          ["model", ["custom", "user", "assistant", "toolResult"]]
        ])
        assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["a5", 'note: "keep it short"', "hi"])
        assert.strictEqual(view.messages.length, 18)
      })
  )

  it.effect("several hooks of one point work from left to right, each on what the one before left", () =>
    Effect.gen(function* () {
      const mark = (name: string) => (message: Message.ModelMessage) =>
        message.role === "user" ? Message.user(`${Message.textOf(message)} ${name}`) : message
      const { requests, view } = yield* play([done], {
        hooks: [
          Hook.transformMessages(({ messages }) => Effect.succeed([...messages, Message.user("one")])),
          Hook.transformMessages(({ messages }) => Effect.succeed([...messages, Message.user("two")])),
          Hook.toModelMessages(({ messages }) =>
            Effect.succeed(
              messages.flatMap((message) => (message.role === "custom" ? [] : [mark("x")(message)]))
            )
          ),
          Hook.toModelMessages(({ messages }) =>
            Effect.succeed(
              messages.flatMap((message) => (message.role === "custom" ? [] : [mark("y")(message)]))
            )
          )
        ]
      })
      assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["hi x y", "one x y", "two x y"])
      assert.deepStrictEqual(texts(view.messages), ["hi", "done"])
    })
  )

  it.effect("a hook that lets only some roles through can lose neither the system prompt nor the tools", () =>
    Effect.gen(function* () {
      const { requests } = yield* play([done], {
        tools: [say("a")],
        options: { system: "Be brief." },
        hooks: [
          Hook.toModelMessages(({ messages }) =>
            Effect.succeed(messages.filter((message) => message.role === "user"))
          )
        ]
      })
      assert.strictEqual(requests[0]?.system, "Be brief.")
      assert.strictEqual(requests[0]?.tools.length, 1)
    })
  )

  it.effect("a request holds what the provider needs, and nothing of the run", () =>
    Effect.gen(function* () {
      const { requests } = yield* play([done], {
        options: {
          system: "s",
          modelOptions: { maxTokens: 9, vendor: { acme: { seed: 1 } } },
          limits: { maxTurns: 3 },
          toolTimeout: 5
        },
        hooks: [Hook.afterModel(() => Effect.void)]
      })
      assert.sameMembers(Object.keys(requests[0] ?? {}), ["model", "system", "messages", "tools", "options"])
      assert.deepStrictEqual(requests[0]?.options, { maxTokens: 9, vendor: { acme: { seed: 1 } } })
    })
  )

  it.effect("sends the same message objects from turn to turn", () =>
    Effect.gen(function* () {
      const { requests } = yield* play([call("a"), call("a"), done], { tools: [say("a")], messages: history })
      const [first, , third] = requests
      assert.isTrue(first?.messages.every((message, index) => message === third?.messages[index]))
    })
  )

  it.effect("changes nothing of the caller's (row 82)", () =>
    Effect.gen(function* () {
      const messages = Object.freeze([Message.user("q"), calling("x"), Object.freeze(resultFor("x"))])
      const prompt = Object.freeze([Object.freeze(Message.user("more"))])
      const provider = yield* ScriptedProvider.make([call("a"), done, done])
      const layer = Layer.mergeAll(provider.layer, ToolRegistry.layer(say("a")))
      yield* Loop.run(prompt, { messages }, Object.freeze({ model: "m" })).pipe(Effect.provide(layer))
      yield* Stream.runDrain(Loop.continue({ messages }, { model: "m" })).pipe(Effect.provide(layer))
      assert.strictEqual(messages.length, 3)
      assert.strictEqual(prompt.length, 1)
    })
  )

  describe("repair", () => {
    const sent = Effect.fnUntraced(function* (messages: ReadonlyArray<Message.Message>) {
      const { events, requests } = yield* play([done], { messages })
      const view = requests[0]?.messages ?? []
      assert.deepStrictEqual(Transcript.violations(view), [])
      return {
        view: view.map((message) =>
          message.role === "toolResult" ? `${message.toolCallId}:${Message.textOf(message)}` : message.role
        ),
        dropped: ofTag(events, "ContextTransformed").map(({ dropped, reason }) => [reason, dropped])
      }
    })

    it.effect("gives a call without a result an honest one (row 47)", () =>
      Effect.gen(function* () {
        const { view } = yield* sent([Message.user("q"), calling("x", "y"), resultFor("y")])
        assert.deepStrictEqual(view, ["user", "assistant", "x:No result of t was recorded.", "y:r", "user"])
      })
    )

    it.effect(
      "leaves out failed answers with their results, results without a call, and second results",
      () =>
        Effect.gen(function* () {
          const failed = { ...calling("f"), stopReason: "error" as const }
          const { dropped, view } = yield* sent([
            Message.user("q"),
            failed,
            resultFor("f"),
            resultFor("nobody"),
            calling("x"),
            resultFor("x", "first"),
            resultFor("x", "second"),
            Message.assistant("a")
          ])
          assert.deepStrictEqual(view, ["user", "assistant", "x:first", "assistant", "user"])
          assert.deepStrictEqual(dropped, [["repair", 4]])
        })
    )

    it.effect("puts results in the order of their calls", () =>
      Effect.gen(function* () {
        const { view } = yield* sent([Message.user("q"), calling("x", "y"), resultFor("y"), resultFor("x")])
        assert.deepStrictEqual(view, ["user", "assistant", "x:r", "y:r", "user"])
      })
    )

    it.effect("says nothing of a transcript that is well", () =>
      Effect.gen(function* () {
        const { dropped } = yield* sent([Message.user("q"), calling("x"), resultFor("x")])
        assert.deepStrictEqual(dropped, [])
      })
    )

    it.effect("a strict transcript is refused instead, before the model is asked (row 47)", () =>
      Effect.gen(function* () {
        const bad = [
          [calling("x")],
          [calling("x"), resultFor("x"), resultFor("x")],
          [resultFor("x")],
          [calling("x", "x"), resultFor("x"), resultFor("x")]
        ]
        for (const messages of bad) {
          const { events, exit, requests } = yield* play([], {
            messages,
            options: { transcript: "strict" }
          })
          assert.strictEqual(reasonOf(exit)?._tag, "InvalidTranscript")
          assert.strictEqual(requests.length, 0)
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )
  })

  describe("made by a context manager of one's own", () => {
    const managed = (view: ContextManager.Service["view"]) =>
      Layer.succeed(ContextManager.ContextManager, { view })

    it.effect("is announced with its reason, and the transcript stays", () =>
      Effect.gen(function* () {
        const { events, requests, view } = yield* play([done], {
          messages: history,
          layer: managed((messages) =>
            Effect.succeed({
              messages: [Message.user("in short"), ...messages.slice(-1)],
              dropped: messages.length - 1,
              reason: "compaction"
            })
          )
        })
        assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["in short", "hi"])
        assert.deepInclude(ofTag(events, "ContextTransformed")[0], {
          reason: "compaction",
          dropped: 12,
          kept: 2
        })
        assert.strictEqual(view.messages.length, 14)
      })
    )

    /** Says that it was asked, and answers when it is told to. */
    const waiting = Effect.gen(function* () {
      const began = yield* Latch.make(false)
      const go = yield* Latch.make(false)
      const layer = managed((messages) =>
        began.open.pipe(
          Effect.andThen(go.await),
          Effect.as({ messages, dropped: 0, reason: "window" as const })
        )
      )
      return { began, go, layer }
    })

    it.effect("that never comes does not keep a cancelled run from its end", () =>
      Effect.gen(function* () {
        const { began, go, layer } = yield* waiting
        const run = yield* Effect.forkChild(play([done], { layer }))
        yield* began.await
        const interrupting = yield* Effect.forkChild(Fiber.interrupt(run), { startImmediately: true })
        yield* settle(500)
        const ended = interrupting.pollUnsafe()
        yield* go.open
        assert.isDefined(ended, "the run hangs in the context manager")
      })
    )

    it.effect("that never comes is cut by executionTime", () =>
      Effect.gen(function* () {
        const { began, go, layer } = yield* waiting
        const run = yield* Effect.forkChild(
          play([done], { layer, options: { limits: { executionTime: "1 minute" } } })
        )
        yield* began.await
        yield* TestClock.adjust("1 minute")
        yield* settle(500)
        const ended = run.pollUnsafe()
        yield* go.open
        assert.isDefined(ended, "the run hangs in the context manager")
      })
    )

    it.effect("that dies ends the run with balanced events, and its defect", () =>
      Effect.gen(function* () {
        const boom = new Error("boom")
        const { events, exit } = yield* play([done], { layer: managed(() => Effect.die(boom)) })
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.strictEqual(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined, boom)
        assert.strictEqual(status(events), "failed")
      })
    )
  })

  it.effect("an agent's transcript keeps everything, whatever its requests leave out (row 180)", () =>
    Effect.gen(function* () {
      const script = yield* agent([done, done, done], {
        hooks: [Hook.transformMessages(({ messages }) => Effect.succeed(messages.slice(-1)))]
      })
      for (const text of ["1", "2", "3"]) yield* script.agent.prompt(text)
      assert.deepStrictEqual(
        (yield* script.requests).map(({ messages }) => texts(messages)),
        [["1"], ["2"], ["3"]]
      )
      assert.strictEqual(ofTag(script.events, "MessageEnd").length, 6)
    })
  )
})
