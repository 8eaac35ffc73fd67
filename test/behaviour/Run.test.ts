import { assert, describe, it } from "@effect/vitest"
import { Cause, Context, Effect, Exit, Fiber, Layer, Option, Redacted, Schema, Scope, Stream } from "effect"
import { Tracer } from "effect"
import { Agent, AgentEvent, Hook, HookManager, Loop, Message, ModelEvent, Provider } from "effect-agent"
import { Credentials } from "effect-agent/providers"
import { ProviderError, Run, Tool, ToolRegistry, Transcript } from "effect-agent"
import { ScriptedProvider, Step } from "effect-agent/testing"
import * as Invariants from "./invariants.ts"
import { agent, failing, gated, ofTag, outcomes, play, range, reasonOf, resultTexts } from "./play.ts"
import { say, settle, status, tags, texts } from "./play.ts"

const done = ScriptedProvider.text("done")
const call = (name: string) => ScriptedProvider.toolCall(name, {})
const phase = (one: Agent.Agent) => one.state.getUnsafe().phase

describe("Run", () => {
  describe("is cold", () => {
    it.effect("one stream of the loop run twice is two runs, each with messages of its own", () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([done, done])
        const stream = Loop.stream("hi", { messages: [] }, { model: "m" })
        const [first, second] = yield* Effect.all([
          Stream.runCollect(stream),
          Stream.runCollect(stream)
        ]).pipe(Effect.provide([provider.layer, ToolRegistry.layer()]))
        assert.notStrictEqual(first[0]?.runId, second[0]?.runId)
        for (const events of [first, second]) assert.deepStrictEqual(Invariants.broken(events), [])
        assert.deepStrictEqual(
          ofTag(second, "MessageEnd").map(({ message }) => Message.textOf(message)),
          ["hi", "done"]
        )
        const ids = [...first, ...second].flatMap((event) =>
          event._tag === "MessageEnd" ? [event.message.id] : []
        )
        assert.strictEqual(new Set(ids).size, 4)
      })
    )

    it.effect("so is an effect of the loop, and the two may run side by side", () =>
      Effect.gen(function* () {
        const provider = yield* ScriptedProvider.make([done, done])
        const run = Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
          Effect.provide([provider.layer, ToolRegistry.layer()])
        )
        const [left, right] = yield* Effect.all([run, run], { concurrency: 2 })
        assert.notStrictEqual(left.runId, right.runId)
        assert.strictEqual((yield* provider.requests).length, 2)
      })
    )

    it.effect("an agent's prompt and stream are, one after the other", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done, done, done])
        const prompt = script.agent.prompt("p")
        yield* prompt
        yield* prompt
        const stream = script.agent.stream("s")
        yield* Stream.runDrain(stream)
        const { messages } = yield* Stream.runFold(stream, AgentEvent.initial, AgentEvent.fold)
        assert.deepStrictEqual(texts(messages), ["s", "done"])
        const all = script.agent.state.getUnsafe().messages
        assert.deepStrictEqual(texts(all), ["p", "done", "p", "done", "s", "done", "s", "done"])
        assert.strictEqual(new Set(all.map(({ id }) => id)).size, 8)
      })
    )

    it.effect("an agent's continue is, and sees the queue as it is then", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done, done])
        const { continue: again } = script.agent
        yield* script.agent.prompt("hi")
        yield* script.agent.steer("1")
        yield* again
        yield* script.agent.steer("2")
        const { newMessages } = yield* again
        assert.deepStrictEqual(texts(newMessages), ["2", "done"])
      })
    )

    it.effect("making a run does nothing", () =>
      Effect.gen(function* () {
        const script = yield* agent([])
        const made = [script.agent.prompt("hi"), script.agent.stream("hi")]
        assert.strictEqual(made.length, 2)
        yield* settle()
        assert.deepStrictEqual(script.events, [])
        assert.strictEqual(phase(script.agent), "idle")
      })
    )
  })

  describe("one at a time", () => {
    it.effect("of ten prompts at once, one runs and nine are told that the agent is busy (row 193)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done])
        const exits = yield* Effect.all(
          range(10).map((n) => Effect.exit(script.agent.prompt(`${n}`))),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
        for (const exit of exits) {
          if (Exit.isFailure(exit)) assert.include(String(Cause.squash(exit.cause)), "AgentBusy")
        }
        assert.strictEqual(script.agent.state.getUnsafe().messages.length, 2)
        assert.strictEqual(ofTag(script.events, "RunStart").length, 1)
      })
    )

    it.effect("every form of a run is refused while one goes on, and consumes nothing (row 193)", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        const run = yield* script.agent.start("hi")
        yield* began.await
        yield* script.agent.followUp("later")
        const refused = [
          yield* Effect.flip(script.agent.prompt("x")),
          yield* Effect.flip(Stream.runDrain(script.agent.stream("x"))),
          yield* Effect.flip(script.agent.continue),
          yield* Effect.flip(script.agent.start("x"))
        ]
        assert.deepStrictEqual(
          refused.map(({ _tag }) => _tag),
          ["AgentBusy", "AgentBusy", "AgentBusy", "AgentBusy"]
        )
        assert.deepStrictEqual(yield* script.agent.queues.sizes, { steering: 0, followUp: 1 })
        yield* script.agent.queues.clear("all")
        yield* go.open
        assert.strictEqual((yield* run.result).status, "completed")
        assert.notInclude(texts(script.agent.state.getUnsafe().messages), "x")
      })
    )

    it.effect("a reset is refused while a run goes on, and changes nothing (row 201)", () =>
      Effect.gen(function* () {
        const { began, go, tool } = yield* gated
        const script = yield* agent([call("gated"), done], { tools: [tool] })
        const run = yield* script.agent.start("hi")
        yield* began.await
        assert.strictEqual((yield* Effect.flip(script.agent.reset))._tag, "AgentBusy")
        yield* go.open
        assert.deepStrictEqual(texts((yield* run.result).newMessages), ["hi", "", "went", "done"])
        yield* script.agent.reset
        assert.deepStrictEqual((yield* script.agent.state.get).messages, [])
      })
    )

    it.effect("a started run knows its id at once, each its own (row 194)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done])
        const ids: Array<string> = []
        for (const text of ["1", "2"]) {
          const run = yield* script.agent.start(text)
          ids.push(run.runId)
          assert.strictEqual((yield* run.result).runId, run.runId)
        }
        assert.deepStrictEqual(
          ofTag(script.events, "RunStart").map(({ runId }) => runId),
          ids
        )
      })
    )
  })

  describe("state", () => {
    it.effect("is idle after a run that completed, failed or was cancelled (rows 164, 190, 209)", () =>
      Effect.gen(function* () {
        const { began, tool } = yield* gated
        const script = yield* agent([done, ScriptedProvider.die("boom"), call("gated")], { tools: [tool] })
        yield* script.agent.prompt("1")
        assert.strictEqual(phase(script.agent), "idle")
        yield* Effect.exit(script.agent.prompt("2"))
        assert.strictEqual(phase(script.agent), "idle")
        const run = yield* script.agent.start("3")
        yield* began.await
        assert.strictEqual(phase(script.agent), "tools")
        assert.deepStrictEqual([...script.agent.state.getUnsafe().pendingToolCalls], ["call-1"])
        yield* run.cancel()
        yield* run.result
        assert.strictEqual(phase(script.agent), "idle")
        assert.strictEqual(script.agent.state.getUnsafe().pendingToolCalls.size, 0)
      })
    )

    it.effect("shows the error of a failed run, until the next begins (rows 190, 204)", () =>
      Effect.gen(function* () {
        const script = yield* agent([
          ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.finish("error")),
          ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "" })),
          done
        ])
        for (const text of ["1", "2"]) {
          yield* Effect.exit(script.agent.prompt(text))
          const { lastError } = script.agent.state.getUnsafe()
          assert.isTrue(lastError !== undefined && lastError !== "")
        }
        yield* script.agent.prompt("3")
        assert.isUndefined(script.agent.state.getUnsafe().lastError)
      })
    )

    it.effect("changes are few: none for a delta", () =>
      Effect.gen(function* () {
        const script = yield* agent([ScriptedProvider.text(range(500).map(String))])
        let changes = 0
        yield* script.agent.state.changes.pipe(
          Stream.runForEach(() => Effect.sync(() => void changes++)),
          Effect.forkScoped({ startImmediately: true })
        )
        yield* script.agent.prompt("hi")
        yield* settle()
        assert.isBelow(changes, 30)
      })
    )

    it.effect("has the messages it is given, and the next request is made from them (row 191)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done])
        yield* script.agent.prompt("1")
        yield* script.agent.setMessages([Message.user("a"), Message.assistant("b")])
        yield* script.agent.prompt("2")
        assert.deepStrictEqual(texts((yield* script.requests)[1]?.messages ?? []), ["a", "b", "2"])
        yield* script.agent.setMessages([])
        assert.deepStrictEqual(script.agent.state.getUnsafe().messages, [])
      })
    )

    it.effect(
      "messages replaced in mid-run are one truth for state and requests, and lose nothing after",
      () =>
        Effect.gen(function* () {
          const { began, go, tool } = yield* gated
          const script = yield* agent([call("gated"), done, done], { tools: [tool] })
          const run = yield* script.agent.start("hi")
          yield* began.await
          const { messages } = script.agent.state.getUnsafe()
          yield* script.agent.setMessages([Message.user("in short"), ...messages.slice(-1)])
          yield* go.open
          yield* run.result
          assert.deepStrictEqual(texts((yield* script.requests)[1]?.messages ?? []), ["in short", "", "went"])
          assert.deepStrictEqual(texts(script.agent.state.getUnsafe().messages), [
            "in short",
            "",
            "went",
            "done"
          ])
        })
    )

    it.effect("an answer that ends after the messages were replaced is kept", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done])
        yield* script.agent.subscribe((event) =>
          event._tag === "MessageStart" && event.role === "assistant"
            ? script.agent.setMessages([Message.user("in short")])
            : Effect.void
        )
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(texts(script.agent.state.getUnsafe().messages), ["in short", "done"])
      })
    )

    it.effect(
      "shows options changed in mid-run at once, and a run takes them from its next turn (row 207)",
      () =>
        Effect.gen(function* () {
          const { began, go, tool } = yield* gated
          const script = yield* agent([call("gated"), done, done], { tools: [tool], system: "one" })
          const run = yield* script.agent.start("hi", { modelOptions: { temperature: 1 } })
          yield* began.await
          yield* script.agent.update({ system: "two" })
          yield* script.agent.update({ modelOptions: { topP: 0.5 } })
          assert.deepInclude(script.agent.state.getUnsafe().options, {
            system: "two",
            modelOptions: { topP: 0.5 }
          })
          yield* go.open
          yield* run.result
          yield* script.agent.prompt("again")
          const requests = yield* script.requests
          assert.deepStrictEqual(
            requests.map(({ options, system }) => [system, options]),
            [
              ["one", { temperature: 1 }],
              ["two", { temperature: 1, topP: 0.5 }],
              ["two", { topP: 0.5 }]
            ]
          )
        })
    )
  })

  describe("tools of an agent", () => {
    it.effect("come and go between runs (row 145)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done, done], { tools: [say("a")] })
        yield* script.agent.prompt("1")
        yield* script.agent.tools.register(say("b"))
        yield* script.agent.prompt("2")
        yield* script.agent.tools.unregister("a")
        yield* script.agent.prompt("3")
        assert.deepStrictEqual(
          (yield* script.requests).map(({ tools }) => tools.map(({ name }) => name)),
          [["a"], ["a", "b"], ["b"]]
        )
      })
    )

    it.effect(
      "that go while the model answers can still be called in that turn, and no more in the next (row 94)",
      () =>
        Effect.gen(function* () {
          const script = yield* agent([call("a"), call("a"), done], { tools: [say("a")] })
          yield* script.agent.subscribe(({ _tag, turn }) =>
            _tag === "ModelCallStart" && turn === 1
              ? Effect.asVoid(script.agent.tools.unregister("a"))
              : Effect.void
          )
          yield* script.agent.prompt("hi")
          assert.deepStrictEqual(outcomes(script.events), ["success", "unknownTool"])
          assert.deepStrictEqual((yield* script.requests)[1]?.tools, [])
        })
    )

    it.effect("that come while the model answers cannot be called before it was told of them (row 94)", () =>
      Effect.gen(function* () {
        const script = yield* agent([call("a"), call("a"), done])
        yield* script.agent.subscribe(({ _tag, turn }) =>
          _tag === "ModelCallStart" && turn === 1 ? script.agent.tools.register(say("a")) : Effect.void
        )
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(outcomes(script.events), ["unknownTool", "success"])
      })
    )
  })

  describe("subscribers", () => {
    it.effect("one that fails changes neither the run nor what others hear (row 105)", () =>
      Effect.gen(function* () {
        const script = [call("a"), done]
        const quiet = yield* agent(script, { tools: [say("a")] })
        yield* quiet.agent.prompt("hi")
        const noisy = yield* agent(script, { tools: [say("a")] })
        yield* noisy.agent.subscribe(() => Effect.fail("broke"))
        yield* noisy.agent.subscribe(() => Effect.die("broke"))
        yield* noisy.agent.subscribe(() => Effect.interrupt)
        yield* noisy.agent.subscribe((): Effect.Effect<void> => {
          throw new Error("broke")
        })
        const heard: Array<string> = []
        yield* noisy.agent.subscribe(({ _tag }) => Effect.sync(() => void heard.push(_tag)))
        const { newMessages, status: ended } = yield* noisy.agent.prompt("hi")
        assert.strictEqual(ended, "completed")
        assert.deepStrictEqual(texts(newMessages), ["hi", "", "a", "done"])
        assert.deepStrictEqual(heard, tags(quiet.events))
        assert.strictEqual((yield* noisy.requests).length, 2)
      })
    )

    it.effect("listen as long as their scope, and hear nothing before (row 203)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done, done, done])
        yield* script.agent.prompt("1")
        const heard: Array<string> = []
        yield* Effect.scoped(
          Effect.andThen(
            script.agent.subscribe(({ _tag, runId }) =>
              _tag === "RunStart" ? Effect.sync(() => void heard.push(runId)) : Effect.void
            ),
            script.agent.prompt("2")
          )
        )
        yield* script.agent.prompt("3")
        assert.strictEqual(heard.length, 1)
      })
    )

    it.effect("that are slow are waited for, by the prompt too (row 234)", () =>
      Effect.gen(function* () {
        const script = yield* agent([done])
        let over = false
        yield* script.agent.subscribe(({ _tag }) =>
          _tag === "RunEnd"
            ? Effect.andThen(
                settle(),
                Effect.sync(() => (over = true))
              )
            : Effect.void
        )
        yield* script.agent.prompt("hi")
        assert.isTrue(over)
      })
    )

    it.effect("need services of their own, from where they subscribed", () =>
      Effect.gen(function* () {
        class Sink extends Context.Service<Sink, { readonly put: (tag: string) => void }>()("test/Sink") {}
        const put: Array<string> = []
        const script = yield* agent([done])
        yield* script.agent
          .subscribe(({ _tag }) => Effect.map(Sink, (sink) => sink.put(_tag)))
          .pipe(Effect.provideService(Sink, { put: (tag) => void put.push(tag) }))
        yield* script.agent.prompt("hi")
        assert.deepStrictEqual(put, tags(script.events))
      })
    )
  })

  describe("closing", () => {
    it.effect("an agent whose scope is closed takes no run, and says nothing more (row 208)", () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const script = yield* agent([done]).pipe(Scope.provide(scope))
        yield* script.agent.prompt("hi")
        yield* Scope.close(scope, Exit.void)
        const heard = script.events.length
        const error = yield* Effect.flip(script.agent.prompt("again"))
        assert.strictEqual(error._tag, "AgentClosed")
        assert.include(error.message, "closed")
        assert.strictEqual(script.events.length, heard)
      })
    )

    it.effect("ends the streams of its events, as streams end", () =>
      Effect.gen(function* () {
        const scope = yield* Scope.make()
        const script = yield* agent([done]).pipe(Scope.provide(scope))
        const reader = yield* script.agent.events.pipe(
          Stream.runCount,
          Effect.forkChild({ startImmediately: true })
        )
        yield* script.agent.prompt("hi")
        yield* Scope.close(scope, Exit.void)
        const exit = yield* Fiber.await(reader)
        assert.isTrue(Exit.isSuccess(exit), String(exit))
      })
    )
  })

  describe("continuing", () => {
    it.effect("from nothing, or from an answer, fails before anything happens (rows 83, 196)", () =>
      Effect.gen(function* () {
        const refused = Effect.fnUntraced(function* (messages: ReadonlyArray<Message.Message>) {
          const provider = yield* ScriptedProvider.make([])
          const happened: Array<string> = []
          const error = yield* Loop.continue({ messages }, { model: "m" }).pipe(
            Stream.runForEach(({ _tag }) => Effect.sync(() => void happened.push(_tag))),
            Effect.flip,
            Effect.provide([
              provider.layer,
              ToolRegistry.layer(),
              HookManager.layer(Hook.steering(() => Effect.sync(() => void happened.push("polled"))))
            ])
          )
          assert.deepStrictEqual(happened, [])
          return error
        })
        assert.deepInclude(yield* refused([]), {
          _tag: "InvalidContinuation",
          message: "Cannot continue: no messages in context"
        })
        assert.deepInclude(yield* refused([Message.user("q"), Message.assistant("a")]), {
          _tag: "InvalidContinuation",
          message: "Cannot continue from message role: assistant"
        })
      })
    )

    it.effect("from a user, a result or a custom message goes on, with new messages only (rows 83, 92)", () =>
      Effect.gen(function* () {
        const asked = Message.assistant([
          { type: "toolCall", id: "x", name: "t", rawArguments: "{}", params: {} }
        ])
        for (const messages of [
          [Message.user("q")],
          [Message.user("q"), asked, Message.toolResult({ id: "x", name: "t" }, "r")],
          [Message.user("q"), Message.custom("note", null)]
        ]) {
          const provider = yield* ScriptedProvider.make([done])
          const events = yield* Loop.continue({ messages }, { model: "m" }).pipe(
            Stream.runCollect,
            Effect.provide([provider.layer, ToolRegistry.layer()])
          )
          assert.deepInclude(events[0], { _tag: "RunStart", continued: true, prompts: [] })
          assert.deepStrictEqual(
            ofTag(events, "MessageEnd").map(({ message }) => Message.textOf(message)),
            ["done"]
          )
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )

    it.effect(
      "an agent after a failed answer takes what is queued, and does not send the failed answer (row 195)",
      () =>
        Effect.gen(function* () {
          const script = yield* agent([
            ScriptedProvider.turn(Step.text("Hel"), Step.fail(new ProviderError.Overloaded({ detail: "" }))),
            ScriptedProvider.text("Hello")
          ])
          assert.isTrue(Exit.isFailure(yield* Effect.exit(script.agent.prompt("hi"))))
          yield* script.agent.followUp("again")
          const { newMessages, status: ended } = yield* script.agent.continue
          assert.strictEqual(ended, "completed")
          assert.deepStrictEqual(texts(newMessages), ["again", "Hello"])
          assert.deepStrictEqual(texts((yield* script.requests)[1]?.messages ?? []), ["hi", "again"])
        })
    )

    it.effect("from nothing an agent is refused, and is free afterwards", () =>
      Effect.gen(function* () {
        const script = yield* agent([done])
        const error = yield* Effect.flip(script.agent.continue)
        assert.deepInclude(error, { _tag: "InvalidContinuation", message: "No messages to continue from" })
        assert.strictEqual((yield* script.agent.prompt("hi")).status, "completed")
      })
    )
  })

  describe("odd inputs", () => {
    it.effect("a prompt that says nothing is refused before the model is asked", () =>
      Effect.gen(function* () {
        for (const prompt of [[], "", Message.user(""), [Message.user("")], Message.user([])]) {
          const { events, exit, requests } = yield* play([done], { prompt })
          assert.strictEqual(requests.length, 0, JSON.stringify(prompt))
          assert.strictEqual(reasonOf(exit)?._tag, "InvalidTranscript")
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )

    it.effect("so it is in a conversation that has an answer already: there is nothing new to answer", () =>
      Effect.gen(function* () {
        for (const prompt of [[], "", " \n"]) {
          const script = yield* agent([done, done])
          yield* script.agent.prompt("hi")
          const exit = yield* Effect.exit(script.agent.prompt(prompt))
          assert.strictEqual(reasonOf(exit)?._tag, "InvalidTranscript", JSON.stringify(prompt))
          assert.strictEqual((yield* script.requests).length, 1)
        }
      })
    )

    it.effect("a request with no message in it is refused before the model is asked", () =>
      Effect.gen(function* () {
        const cases: ReadonlyArray<Parameters<typeof play>[1]> = [
          { hooks: [Hook.toModelMessages(() => Effect.succeed([]))] },
          { hooks: [Hook.transformMessages(() => Effect.succeed([]))] },
          { prompt: Message.custom("note", "nobody sends this") }
        ]
        for (const setup of cases) {
          const { events, exit, requests } = yield* play([done], setup)
          assert.strictEqual(requests.length, 0)
          assert.strictEqual(reasonOf(exit)?._tag, "InvalidTranscript")
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )

    it.effect("an empty prompt beside queued steering is fine: there is something to say", () =>
      Effect.gen(function* () {
        const script = yield* agent([done])
        yield* script.agent.steer("hello")
        const { newMessages } = yield* script.agent.prompt([])
        assert.deepStrictEqual(texts(newMessages), ["hello", "done"])
      })
    )

    it.effect("long texts and special characters arrive as they are", () =>
      Effect.gen(function* () {
        for (const text of ["x".repeat(1_000_000), "a\u0000b \u2028 🎉 \ud800 \"'\\ </script>"]) {
          const { requests, view } = yield* play([ScriptedProvider.text(text)], { prompt: text })
          assert.strictEqual(texts(requests[0]?.messages ?? [])[0], text)
          assert.strictEqual(texts(view.messages)[1], text)
        }
      })
    )

    it.effect("a result nobody asked for is not sent", () =>
      Effect.gen(function* () {
        const { requests } = yield* play([done], {
          prompt: [Message.toolResult({ id: "x", name: "x" }, "r"), Message.user("hi")]
        })
        assert.deepStrictEqual(texts(requests[0]?.messages ?? []), ["hi"])
      })
    )

    it.effect("a provider that dies of something that has no words fails the run, with balanced events", () =>
      Effect.gen(function* () {
        for (const [defect, message] of [
          [Object.create(null), "{}"],
          [{ message: "out of luck", password: "p-123" }, "out of luck"],
          [{ code: 7, password: "p-123" }, '{"code":7}']
        ] as const) {
          const { events } = yield* play([ScriptedProvider.die(defect)])
          assert.deepStrictEqual(ofTag(events, "RunEnd")[0]?.error, { _tag: "Defect", message })
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )

    it.effect("a provider that throws before it gives a stream fails the run like one that dies in it", () =>
      Effect.gen(function* () {
        const boom = new Error("boom")
        const events: Array<AgentEvent.AgentEvent> = []
        const exit = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
          Stream.runForEach((event) => Effect.sync(() => void events.push(event))),
          Effect.provide([
            Layer.succeed(Provider.Provider, {
              id: "broken",
              stream: () => {
                throw boom
              }
            }),
            ToolRegistry.layer()
          ]),
          Effect.exit
        )
        assert.strictEqual(Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined, boom)
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("a provider that interrupts itself fails the run, and hangs nobody", () =>
      Effect.gen(function* () {
        const { events, exit } = yield* play([
          ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.run(Effect.interrupt))
        ])
        assert.isTrue(Exit.isFailure(exit))
        assert.deepStrictEqual(Invariants.broken(events), [])
      })
    )

    it.effect("a reader that fails ends the run, and its failure is what comes out", () =>
      Effect.gen(function* () {
        const script = yield* agent([call("a"), done, done], { tools: [say("a")] })
        const failure = yield* script.agent.stream("hi").pipe(
          Stream.mapEffect(({ _tag }) => (_tag === "ToolInvoked" ? Effect.fail("full") : Effect.void)),
          Stream.runDrain,
          Effect.flip
        )
        assert.strictEqual(failure, "full")
        assert.strictEqual(status(script.events), "cancelled")
        assert.strictEqual((yield* script.agent.prompt("again")).status, "completed")
      })
    )

    it.effect("an answer that stops for no reason, or by itself, is a failure (rows 64, 75)", () =>
      Effect.gen(function* () {
        const bad = [
          ScriptedProvider.turn(),
          ScriptedProvider.turn(Step.start),
          ScriptedProvider.turn(Step.start, Step.text("x"), Step.finish("aborted")),
          ScriptedProvider.turn(Step.start, Step.text("x"), Step.toolCall("a", {}), Step.finish("error"))
        ]
        for (const turn of bad) {
          const { events, exit } = yield* play([turn], { tools: [say("a")] })
          assert.strictEqual(reasonOf(exit)?._tag, "ProviderError")
          assert.notInclude(tags(events), "ToolExecutionStart")
          assert.deepStrictEqual(Invariants.broken(events), [])
        }
      })
    )

    it.effect("refusals and filters end a run as answers do, and say so", () =>
      Effect.gen(function* () {
        for (const stopReason of ["refusal", "contentFilter", "length"] as const) {
          const { view } = yield* play([ScriptedProvider.text("no", { stopReason })])
          assert.strictEqual(view.status, "completed")
          assert.deepInclude(view.messages.at(-1), { stopReason })
        }
      })
    )

    it.effect("blocks out of order, without a start or without an end are put together", () =>
      Effect.gen(function* () {
        const { view } = yield* play(
          [
            ScriptedProvider.turn(
              Step.event({ _tag: "TextDelta", contentIndex: 4, delta: "late" }),
              Step.event({ _tag: "ToolCallStart", contentIndex: 2, id: "x", name: "a" }),
              Step.event({ _tag: "ThinkingDelta", contentIndex: 0, delta: "hm" }),
              Step.event({ _tag: "ToolCallEnd", contentIndex: 2, rawArguments: "{}" }),
              Step.event({ _tag: "TextDelta", contentIndex: 4, delta: "r" }),
              Step.finish("toolUse")
            ),
            done
          ],
          { tools: [say("a")] }
        )
        const answer = view.messages[1]
        assert.deepStrictEqual(answer?.role === "assistant" ? answer.content.map(({ type }) => type) : [], [
          "thinking",
          "toolCall",
          "text"
        ])
        assert.deepStrictEqual(resultTexts(view.messages), ["a"])
      })
    )

    it.effect("an answer without a start begins all the same, and ends once (row 64)", () =>
      Effect.gen(function* () {
        const bare = Provider.Provider.of({
          id: "bare",
          stream: () =>
            Stream.make<[ModelEvent.ModelEvent, ModelEvent.ModelEvent]>(
              { _tag: "TextDelta", contentIndex: 0, delta: "ok" },
              { _tag: "Finish", stopReason: "stop" }
            )
        })
        const events = yield* Loop.stream("hi", { messages: [] }, { model: "m" }).pipe(
          Stream.runCollect,
          Effect.provide([Layer.succeed(Provider.Provider, bare), ToolRegistry.layer()])
        )
        const answer = tags(events).filter((tag) => tag.startsWith("Message"))
        assert.deepStrictEqual(answer.slice(2), ["MessageStart", "MessageDelta", "MessageEnd"])
        assert.deepInclude(ofTag(events, "MessageEnd")[1]?.message, { content: [Message.text("ok")] })
      })
    )

    it.effect("calls that share an id, or have none, get one each, and a result each", () =>
      Effect.gen(function* () {
        const { events, view } = yield* play(
          [
            ScriptedProvider.turn(
              ...["same", "same", "", "", "same_2"].map((id) => Step.toolCall("a", {}, { id })),
              Step.finish("toolUse")
            ),
            ScriptedProvider.turn(Step.toolCall("a", {}, { id: "same" }), Step.finish("toolUse")),
            done
          ],
          { tools: [say("a")], options: { limits: { maxIdenticalToolCalls: Infinity } } }
        )
        assert.deepStrictEqual(Transcript.violations(view.messages), [])
        assert.deepStrictEqual(Invariants.broken(events), [])
        assert.strictEqual(resultTexts(view.messages).length, 6)
      })
    )

    it.effect("of two ends of an answer the last one counts", () =>
      Effect.gen(function* () {
        const { view } = yield* play([
          ScriptedProvider.turn(
            Step.start,
            Step.text("a"),
            Step.finish("stop", { input: 1 }),
            Step.finish("stop", { input: 2, output: 1 })
          )
        ])
        assert.strictEqual(view.usage?.total, 3)
      })
    )
  })

  describe("sub-agents", () => {
    it.effect("a loop inside a tool names the call it belongs to, however deep", () =>
      Effect.gen(function* () {
        const parents: Array<AgentEvent.AgentEvent["parent"]> = []
        const paths: Array<AgentEvent.AgentEvent["path"]> = []
        const runIds: Array<string> = []
        const nested = (name: string, script: ScriptedProvider.Script, tools: ReadonlyArray<Tool.Runnable>) =>
          Tool.make({
            name,
            description: "Asks another.",
            execute: () =>
              Effect.gen(function* () {
                const provider = yield* ScriptedProvider.make(script)
                const first = yield* Loop.stream("go", { messages: [] }, { model: "m" }).pipe(
                  Stream.runCollect,
                  Effect.provide([provider.layer, ToolRegistry.layer(...tools)])
                )
                parents.push(...new Set(first.map(({ parent }) => parent)))
                paths.push(...new Set(first.map(({ path }) => path)))
                runIds.push(first[0]?.runId ?? "")
                return "ok"
              })
          })
        const inner = nested("inner", [done], [])
        const middle = nested("middle", [ScriptedProvider.toolCall("inner", {}, { id: "i" }), done], [inner])
        const { events } = yield* play([ScriptedProvider.toolCall("middle", {}, { id: "m" }), done], {
          tools: [middle]
        })
        const [innerRun, middleRun] = runIds
        assert.notStrictEqual(innerRun, middleRun)
        assert.deepInclude(parents, { runId: middleRun, toolCallId: "i" })
        assert.deepInclude(parents, { runId: events[0]?.runId, toolCallId: "m" })
        const outer = { runId: events[0]?.runId, toolCallId: "m" }
        assert.deepStrictEqual<unknown>(paths, [[outer, { runId: middleRun, toolCallId: "i" }], [outer]])
        for (const { parent, path } of events) assert.deepStrictEqual([parent, path], [undefined, undefined])
      })
    )

    it.effect("runs beside one another on the same layers share nothing (row 254)", () =>
      Effect.gen(function* () {
        const run = Effect.fnUntraced(function* (text: string) {
          const provider = yield* ScriptedProvider.make([call("a"), ScriptedProvider.text(text)])
          return yield* Loop.run(text, { messages: [] }, { model: "m" }).pipe(Effect.provide(provider.layer))
        })
        const results = yield* Effect.all(
          range(20).map((n) => run(`${n}`)),
          { concurrency: "unbounded" }
        ).pipe(Effect.provide(ToolRegistry.layer(say("a"))))
        for (const [n, { newMessages, report }] of results.entries()) {
          assert.deepStrictEqual(texts(newMessages), [`${n}`, "", "a", `${n}`])
          assert.strictEqual(report.toolCalls, 1)
        }
      })
    )
  })

  it.effect("an agent asked by its own tool is busy, and the model is told", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("ask"), done])
      const ask = Tool.make({
        name: "ask",
        description: "Asks the very agent that calls it.",
        execute: () => Effect.as(script.agent.prompt("again"), "answered")
      })
      yield* script.agent.tools.register(ask)
      const { newMessages, status: ended } = yield* script.agent.prompt("hi")
      assert.strictEqual(ended, "completed")
      assert.include(resultTexts(newMessages)[0], "already processing")
    })
  )

  describe("credentials", () => {
    /** A transport that asks for its key, as those of vendors do. */
    const asking = (keys: Array<string>) =>
      Provider.Provider.of({
        id: "acme",
        stream: () =>
          Stream.unwrap(
            Effect.gen(function* () {
              const { apiKey } = yield* Credentials.Credentials
              const key = yield* apiKey("acme")
              keys.push(Option.match(key, { onNone: () => "none", onSome: Redacted.value }))
              return (yield* ScriptedProvider.make([done])).provider.stream({
                model: "m",
                messages: [],
                tools: [],
                options: {}
              })
            })
          )
      })
    const keyOf = (tenant: string) =>
      Credentials.layer((provider) => Effect.succeedSome(Redacted.make(`${tenant} of ${provider}`)))

    it.effect("are none by default, those of the layer, or those of the caller, for each call", () =>
      Effect.gen(function* () {
        const keys: Array<string> = []
        const layer = Layer.succeed(Provider.Provider, asking(keys))
        const plain = yield* Agent.make({ model: "m" }).pipe(Effect.provide(layer))
        yield* plain.prompt("hi")
        const keyed = yield* Agent.make({ model: "m" }).pipe(Effect.provide([layer, keyOf("agent")]))
        yield* keyed.prompt("hi")
        yield* keyed.prompt("hi").pipe(Effect.provide(keyOf("caller")))
        yield* Stream.runDrain(keyed.stream("hi")).pipe(Effect.provide(keyOf("reader")))
        assert.deepStrictEqual(keys, ["none", "agent of acme", "caller of acme", "reader of acme"])
      })
    )

    it.effect("that cannot be had fail the run, typed", () =>
      Effect.gen(function* () {
        const error = new ProviderError.ProviderError({
          provider: "acme",
          reason: new ProviderError.Unauthenticated({ detail: "the vault is closed" })
        })
        const exit = yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
          Effect.provide([
            Layer.succeed(Provider.Provider, asking([])),
            ToolRegistry.layer(),
            Credentials.layer(() => Effect.fail(error))
          ]),
          Effect.exit
        )
        assert.strictEqual(reasonOf(exit), error)
      })
    )
  })

  it.effect("makes spans for the run, its calls and its tools, and a failed run's span has failed", () =>
    Effect.gen(function* () {
      const spans: Array<Tracer.Span> = []
      const provider = yield* ScriptedProvider.make([call("bad"), ScriptedProvider.die("boom")])
      yield* Loop.run("hi", { messages: [] }, { model: "m" }).pipe(
        Effect.provide([provider.layer, ToolRegistry.layer(failing("bad"))]),
        Effect.withTracer(
          Tracer.make({
            span: (options) => {
              const span = new Tracer.NativeSpan(options)
              spans.push(span)
              return span
            }
          })
        ),
        Effect.exit
      )
      const named = (name: string) => spans.filter((span) => span.name === name)
      assert.strictEqual(named("invoke_agent").length, 1)
      assert.strictEqual(named("chat m").length, 2)
      assert.strictEqual(named("execute_tool bad").length, 1)
      assert.isTrue(spans.every(({ status: { _tag } }) => _tag === "Ended"))
      const [run] = named("invoke_agent")
      assert.isTrue(run?.status._tag === "Ended" && Exit.isFailure(run.status.exit))
    })
  )

  it.effect("catches its failure by reason (row 242)", () =>
    Effect.gen(function* () {
      const script = yield* agent([call("a")], { tools: [say("a")], limits: { maxTurns: 1 } })
      const caught = yield* script.agent.prompt("hi").pipe(
        Effect.map(({ status: ended }) => String(ended)),
        Effect.catchReason("RunFailed", "LimitExceeded", ({ limit, max }) =>
          Effect.succeed(`${limit} ${max}`)
        )
      )
      assert.strictEqual(caught, "maxTurns 1")
    })
  )

  it.effect("the result has the text of the last answer, also that of a run that failed (row 66)", () =>
    Effect.gen(function* () {
      const failure = new ProviderError.Unauthenticated({ detail: "no" })
      const script = yield* agent(
        [
          ScriptedProvider.turn(
            Step.text(["I look ", "it up."]),
            Step.toolCall("a", {}),
            Step.finish("toolUse")
          ),
          done,
          ScriptedProvider.fail(failure)
        ],
        { tools: [say("a")] }
      )
      const result = yield* script.agent.prompt("hi")
      assert.strictEqual(result.text, "done")
      const failed = yield* Effect.flip(script.agent.prompt("again"))
      assert.strictEqual(failed._tag === "RunFailed" ? failed.result.text : undefined, "")
      const codec = Schema.fromJsonString(Schema.toCodecJson(Run.RunResult))
      assert.include(yield* Schema.encodeEffect(codec)(result), '"text":"done"')
    })
  )

  it.effect("has the id that the application chose, else one of its own", () =>
    Effect.gen(function* () {
      const { agent: given } = yield* agent([done, done, done])
      const first = yield* given.prompt("hi", { runId: "run_mine" })
      const second = yield* given.prompt("hi")
      const started = yield* given.start("hi", { runId: "run_third" })
      assert.strictEqual(first.runId, "run_mine")
      assert.notStrictEqual(second.runId, "run_mine")
      assert.strictEqual(started.runId, "run_third")
      const refused = yield* Effect.flip(given.prompt("hi", { runId: "" }))
      assert.strictEqual(refused._tag, "InvalidInput")
      const provider = yield* ScriptedProvider.make([done])
      const run = Loop.run("hi", { messages: [] }, { model: "m", runId: "run_loop" })
      const looped = yield* Effect.provide(run, [provider.layer, ToolRegistry.layer()])
      assert.strictEqual(looped.runId, "run_loop")
    })
  )
})
