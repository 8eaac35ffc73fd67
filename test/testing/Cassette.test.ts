import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Exit, Fiber, FileSystem, Layer, Redacted, Schema, Stream } from "effect"
import { Agent, Message, ModelEvent, Provider, ProviderError, Tool } from "effect-agent"
import { Cassette, ScriptedProvider, Step } from "effect-agent/testing"

type Script = ReadonlyArray<ScriptedProvider.Turn>

const request = (changes?: Partial<Provider.ModelRequest>): Provider.ModelRequest => ({
  model: "m",
  system: "Be brief.",
  messages: [Message.user("Hi")],
  tools: [],
  options: { temperature: 0 },
  ...changes
})

const asked = (text: string) => request({ messages: [Message.user(text)] })

const stream = (request: Provider.ModelRequest) =>
  Stream.unwrap(Effect.map(Provider.Provider, (provider) => provider.stream(request)))

const ask = (...requests: ReadonlyArray<Provider.ModelRequest>) =>
  Effect.forEach(requests, (request) =>
    Stream.runCollect(stream(request)).pipe(
      Effect.map((events) => events.map((event) => (event._tag === "TextDelta" ? event.delta : "")).join(""))
    )
  )

const folder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

/** Asks a script through a cassette. Says what came of it, and how often the script was asked. */
const play = Effect.fnUntraced(function* <A, E>(
  options: Cassette.Options,
  script: Script,
  use: Effect.Effect<A, E, Provider.Provider>
) {
  const provider = yield* ScriptedProvider.make(script)
  const exit = yield* Effect.exit(Effect.provide(use, Cassette.layer(options)(provider.layer)))
  return { exit, calls: (yield* provider.requests).length }
})

/** What it came to, when nobody was asked. */
const replay = <A, E>(
  directory: string,
  use: Effect.Effect<A, E, Provider.Provider>,
  options?: Partial<Cassette.Options>
) =>
  Effect.provide(use, Cassette.layer({ directory, mode: "replay", ...options })(ScriptedProvider.layer([])))

const detailOf = (error: ProviderError.ProviderError) => {
  assert.strictEqual(error.reason._tag, "InvalidRequest")
  return error.reason.detail
}

const filesIn = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* fs.readDirectory(directory).pipe(Effect.orElseSucceed((): Array<string> => []))
  return yield* Effect.forEach(names.sort(), (name) =>
    Effect.map(fs.readFileString(`${directory}/${name}`), (text) => ({ name, text }))
  )
})

const busy = new ProviderError.Overloaded({ detail: "busy", retryAfter: Duration.seconds(2) })

it.layer(NodeServices.layer)("Cassette", (it) => {
  describe("a recording", () => {
    it.effect("plays what was said, in the arrays it came in, without asking", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const batches: ReadonlyArray<
          readonly [ModelEvent.ModelEvent, ...ReadonlyArray<ModelEvent.ModelEvent>]
        > = [
          [{ _tag: "Start", provider: "p", model: "m-1", protocol: "x", responseId: "r" }],
          [
            { _tag: "ThinkingStart", contentIndex: 0 },
            { _tag: "ThinkingDelta", contentIndex: 0, delta: "Hm" }
          ],
          [
            { _tag: "ThinkingEnd", contentIndex: 0, opaque: { provider: "p", sig: "s" } },
            { _tag: "ToolCallStart", contentIndex: 1, id: "c", name: "f" },
            { _tag: "ToolCallEnd", contentIndex: 1, rawArguments: "{}" },
            { _tag: "Finish", stopReason: "toolUse" }
          ]
        ]
        const inner = Layer.succeed(Provider.Provider, {
          id: "p",
          stream: () => Stream.flattenArray(Stream.fromIterable(batches))
        })
        const arrays = Effect.gen(function* () {
          const seen: Array<unknown> = []
          yield* Stream.runForEachArray(stream(request()), (batch) =>
            Effect.sync(() => void seen.push(batch))
          )
          return seen
        })
        const live = yield* Effect.provide(arrays, Cassette.layer({ directory, mode: "record" })(inner))
        assert.deepStrictEqual<unknown>(live, batches)
        assert.deepStrictEqual<unknown>(yield* replay(directory, arrays), batches)
      })
    )

    it.effect("is a readable file named by the SHA-256 of the request", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        yield* play({ directory, mode: "record" }, [ScriptedProvider.text("Hello")], ask(request()))
        const [file, ...others] = yield* filesIn(directory)
        assert.match(file?.name ?? "", /^[0-9a-f]{64}\.json$/)
        assert.deepStrictEqual(others, [])
        const text = file?.text ?? ""
        const { answers, request: written } = JSON.parse(text)
        assert.strictEqual(text, `${JSON.stringify({ request: written, answers }, undefined, 2)}\n`)
        assert.deepStrictEqual(written, {
          model: "m",
          system: "Be brief.",
          messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
          tools: [],
          options: { temperature: 0 }
        })
        assert.deepStrictEqual(
          answers[0].events.flat().map(({ _tag }: ModelEvent.ModelEvent) => _tag),
          ["Start", "TextStart", "TextDelta", "TextEnd", "Finish"]
        )
      })
    )

    it.effect("is found whatever the ids, the timestamps and the order of members are", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const conversation = (run: number) => {
          const call = { id: `call_${run}`, name: "f" }
          return request({
            messages: [
              { ...Message.user("Hi", run), id: `u${run}` },
              Message.assistant([{ type: "toolCall", ...call, rawArguments: `{"a":1}`, params: { a: 1 } }], {
                id: `a${run}`,
                timestamp: run,
                responseId: `resp_${run}`,
                stopReason: "toolUse"
              }),
              Message.toolResult(call, "ok", { timestamp: run, details: { took: run } })
            ],
            options: run === 1 ? { temperature: 0, topP: 1, sessionId: "s1" } : { topP: 1, temperature: 0 }
          })
        }
        yield* play({ directory, mode: "record" }, [ScriptedProvider.text("Hello")], ask(conversation(1)))
        assert.deepStrictEqual(yield* replay(directory, ask(conversation(2))), ["Hello"])
      })
    )

    it.effect("keeps failures, also those in the middle of an answer", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const use = Effect.all([
          Effect.flip(ask(asked("one"))),
          Effect.flip(ask(asked("two"))),
          Effect.exit(ask(asked("three")))
        ])
        const script = [
          ScriptedProvider.fail(busy),
          ScriptedProvider.turn(Step.start, Step.text("Hel"), Step.fail(busy)),
          ScriptedProvider.turn(Step.start, Step.text("Hel"))
        ]
        const live = yield* play({ directory, mode: "record" }, script, use)
        const played = yield* Effect.exit(replay(directory, use))
        assert.deepStrictEqual(played, live.exit)
        const [first] = Exit.isSuccess(played) ? played.value : []
        assert.deepStrictEqual(first?.retryAfter, Duration.seconds(2))
        assert.strictEqual(first?.isRetryable, true)
      })
    )

    it.effect("plays several answers to one request in their order, and then no more", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const script = [ScriptedProvider.text("one"), ScriptedProvider.text("two")]
        yield* play({ directory, mode: "record" }, script, ask(request(), request()))
        assert.deepStrictEqual(yield* replay(directory, ask(request(), request())), ["one", "two"])
        assert.deepStrictEqual(yield* replay(directory, ask(request())), ["one"])
        const error = yield* Effect.flip(replay(directory, ask(request(), request(), request())))
        assert.include(detailOf(error), "was recorded 2 times")
        assert.include(detailOf(error), "and this is call 3")
      })
    )

    it.effect("gives each of those who ask at once an answer of its own", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const both = Effect.all([ask(request()), ask(request())], { concurrency: 2 })
        const script = [ScriptedProvider.text("one"), ScriptedProvider.text("two")]
        yield* play({ directory, mode: "record" }, script, both)
        assert.sameMembers((yield* replay(directory, both)).flat(), ["one", "two"])
      })
    )

    it.effect("takes the place of an older one", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const record = (script: Script) =>
          play({ directory, mode: "record" }, script, ask(...script.map(() => request())))
        yield* record([ScriptedProvider.text("old"), ScriptedProvider.text("older")])
        yield* record([ScriptedProvider.text("new")])
        assert.deepStrictEqual(yield* replay(directory, ask(request())), ["new"])
        assert.isTrue(Exit.isFailure(yield* Effect.exit(replay(directory, ask(request(), request())))))
      })
    )

    it.effect(
      "is of the whole answer: one that is left is not kept, and plays again when left in a replay",
      () =>
        Effect.gen(function* () {
          const directory = yield* folder
          const begun = yield* Deferred.make<void>()
          const leave = Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(Stream.runDrain(stream(request())))
            yield* Deferred.await(begun)
            yield* Fiber.interrupt(fiber)
          })
          const script = [
            ScriptedProvider.turn(
              Step.start,
              Step.text("Hel"),
              Step.run(Deferred.succeed(begun, undefined)),
              Step.never
            ),
            ScriptedProvider.text("Hello")
          ]
          const first = stream(request()).pipe(Stream.take(2), Stream.runDrain)
          yield* play({ directory, mode: "record" }, script, Effect.andThen(leave, ask(request())))
          assert.deepStrictEqual(yield* replay(directory, Effect.andThen(first, ask(request()))), ["Hello"])
        })
    )

    it.effect("is there for a reader who leaves with the finish", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const untilFinish = stream(request()).pipe(
          Stream.takeUntil(({ _tag }) => _tag === "Finish"),
          Stream.runDrain
        )
        yield* play({ directory, mode: "record" }, [ScriptedProvider.text("Hello")], untilFinish)
        assert.deepStrictEqual(yield* replay(directory, ask(request())), ["Hello"])
        const twice = Effect.andThen(untilFinish, ask(request()))
        assert.include(detailOf(yield* Effect.flip(replay(directory, twice))), "was recorded once")
      })
    )

    it.effect("of a session plays it again, tools and all", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        let ran = 0
        const add = Tool.make({
          name: "add",
          description: "Adds.",
          params: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
          execute: ({ a, b }) => Effect.sync(() => (ran++, a + b))
        })
        const session = Effect.gen(function* () {
          const agent = yield* Agent.make({ model: "m", tools: [add] })
          const { newMessages } = yield* agent.prompt("2 + 3?")
          return newMessages.map(Message.textOf)
        }).pipe(Effect.scoped)
        const script = [
          // A vendor that gives its calls no ids: the loop makes them, other ones in each run.
          ScriptedProvider.toolCall("add", { a: 2, b: 3 }, { id: "" }),
          ScriptedProvider.text("5")
        ]
        const { exit } = yield* play({ directory, mode: "record" }, script, session)
        assert.deepStrictEqual(yield* Effect.exit(replay(directory, session)), exit)
        assert.deepStrictEqual(exit, Exit.succeed(["2 + 3?", "", "5", "5"]))
        assert.strictEqual(ran, 2)
      })
    )
  })

  describe("a mode", () => {
    it.effect("auto asks for what is not recorded, and only for that", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const auto = (script: Script, ...texts: ReadonlyArray<string>) =>
          play({ directory, mode: "auto" }, script, ask(...texts.map(asked)))
        const first = yield* auto([ScriptedProvider.text("1")], "one")
        const second = yield* auto(
          [ScriptedProvider.text("2"), ScriptedProvider.text("1 again")],
          "one",
          "two",
          "one"
        )
        const third = yield* auto([], "one", "two", "one")
        assert.deepStrictEqual([first.exit, first.calls], [Exit.succeed(["1"]), 1])
        assert.deepStrictEqual([second.exit, second.calls], [Exit.succeed(["1", "2", "1 again"]), 2])
        assert.deepStrictEqual([third.exit, third.calls], [Exit.succeed(["1", "2", "1 again"]), 0])
      })
    )

    it.effect("live asks, and writes nothing", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const { exit } = yield* play(
          { directory, mode: "live" },
          [ScriptedProvider.text("1")],
          ask(request())
        )
        assert.deepStrictEqual(exit, Exit.succeed(["1"]))
        assert.deepStrictEqual(yield* filesIn(directory), [])
      })
    )

    it.effect("replay does not even build the provider: it needs no key", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        yield* play({ directory, mode: "record" }, [ScriptedProvider.text("Hello")], ask(request()))
        const keyless: Layer.Layer<Provider.Provider, string> = Layer.unwrap(Effect.fail("no key"))
        const said = yield* Effect.provide(
          ask(request()),
          Cassette.layer({ directory, mode: "replay" })(keyless)
        )
        assert.deepStrictEqual(said, ["Hello"])
      })
    )

    it.effect("is read from configuration by its schema", () =>
      Effect.sync(() => {
        assert.isTrue(Schema.is(Cassette.Mode)("auto"))
        assert.isFalse(Schema.is(Cassette.Mode)("automatic"))
      })
    )

    it.effect("belongs to each provider of an application", () =>
      Effect.gen(function* () {
        const [a, b] = [yield* folder, yield* folder]
        const record = (directory: string, said: string) =>
          Effect.provide(
            ask(request()),
            Cassette.layer({ directory, mode: "record" })(
              ScriptedProvider.layer([ScriptedProvider.text(said)])
            )
          )
        yield* Effect.all([record(a, "a"), record(b, "b")])
        assert.deepStrictEqual(yield* Effect.all([replay(a, ask(request())), replay(b, ask(request()))]), [
          ["a"],
          ["b"]
        ])
      })
    )

    it.effect("works around a provider at hand", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const { provider } = yield* ScriptedProvider.make([ScriptedProvider.text("Hello")])
        const recording = yield* Cassette.make(provider, { directory, mode: "record" })
        assert.strictEqual(recording.id, "scripted")
        yield* Stream.runDrain(recording.stream(request()))
        assert.deepStrictEqual(yield* replay(directory, ask(request())), ["Hello"])
      })
    )
  })

  describe("a miss", () => {
    const recorded = Effect.gen(function* () {
      const directory = yield* folder
      const conversation = request({
        messages: [Message.user("Hi"), Message.assistant("Hello"), Message.user("a")]
      })
      const script = [ScriptedProvider.text("1"), ScriptedProvider.text("2")]
      yield* play({ directory, mode: "record" }, script, ask(request(), conversation))
      return {
        miss: (changes: Partial<Provider.ModelRequest>) =>
          Effect.map(Effect.flip(replay(directory, ask({ ...conversation, ...changes }))), (error) => ({
            error,
            detail: detailOf(error)
          })),
        conversation
      }
    })

    it.effect("says which request it is, and where it differs from the nearest recording", () =>
      Effect.gen(function* () {
        const { conversation, miss } = yield* recorded
        const { detail, error } = yield* miss({
          messages: [...conversation.messages.slice(0, 2), Message.user("b")]
        })
        assert.isFalse(error.isRetryable)
        assert.strictEqual(error.provider, "cassette")
        assert.include(detail, `The request to "m" with 3 messages`)
        assert.include(detail, `differs first at messages[2].content[0].text: "a" recorded, "b" requested`)
      })
    )

    it.effect("says what is there on one side only", () =>
      Effect.gen(function* () {
        const { conversation, miss } = yield* recorded
        const more = yield* miss({ messages: [...conversation.messages, Message.user("c")] })
        assert.include(more.detail, `messages[3]: nothing recorded, {"role":"user"`)
        const fewer = yield* miss({ options: {} })
        assert.include(fewer.detail, "options.temperature: 0 recorded, nothing requested")
      })
    )

    it.effect("cuts long texts to where they part", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const system = (end: string) => request({ system: `${"x".repeat(3000)} ${end} ${"y".repeat(3000)}` })
        yield* play({ directory, mode: "record" }, [ScriptedProvider.text("1")], ask(system("one")))
        const detail = detailOf(yield* Effect.flip(replay(directory, ask(system("two")))))
        assert.match(detail, /system: …"x+ one y+"… recorded, …"x+ two y+"… requested/)
        assert.isBelow(detail.length, 800)
      })
    )

    it.effect("says that nothing is there", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const missing = yield* Effect.flip(replay(`${directory}/none`, ask(request())))
        assert.include(detailOf(missing), "nothing is recorded there")
      })
    )
  })

  describe("files", () => {
    it.effect("that are no recordings fail the request, and no other", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const fs = yield* FileSystem.FileSystem
        yield* play({ directory, mode: "record" }, [ScriptedProvider.text("1")], ask(request()))
        const [file] = yield* filesIn(directory)
        assert(file !== undefined)
        yield* fs.writeFileString(`${directory}/${file.name}`, `{"answers":`)
        assert.include(
          detailOf(yield* Effect.flip(replay(directory, ask(request())))),
          `${file.name}: is not a recording`
        )
        assert.include(
          detailOf(yield* Effect.flip(replay(directory, ask(asked("other"))))),
          "nothing is recorded there"
        )
        const auto = yield* play({ directory, mode: "auto" }, [], ask(request()))
        assert.isTrue(Exit.isFailure(auto.exit))
        assert.strictEqual(auto.calls, 0)
      })
    )

    it.effect("that cannot be written fail the request before its end is seen", () =>
      Effect.gen(function* () {
        const directory = `${yield* folder}/file`
        const fs = yield* FileSystem.FileSystem
        yield* fs.writeFileString(directory, "")
        const seen: Array<string> = []
        const use = stream(request()).pipe(
          Stream.runForEach(({ _tag }) => Effect.sync(() => seen.push(_tag)))
        )
        const { exit } = yield* play(
          { directory, mode: "record" },
          [ScriptedProvider.text("1")],
          Effect.flip(use)
        )
        assert.isTrue(Exit.isSuccess(exit))
        assert.notInclude(seen, "Finish")
      })
    )

    it.effect("hold no secret", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const secrets = [Redacted.make("correct horse")]
        const spoken = request({
          system: "The password is correct horse.",
          messages: [Message.user("Use sk-ant-REDACTED, and Bearer abcdefghijk.")],
          options: {
            vendor: { acme: { "api-key": "plain", nested: { auth_token: "plainer" }, user: "me" } },
            hostedTools: [{ type: "codeExecution", vendor: { acme: { authorization: "plainest" } } }]
          }
        })
        const script = [
          ScriptedProvider.text(["It is corr", "ect ho", "rse."]),
          ScriptedProvider.fail(new ProviderError.Unauthenticated({ detail: "bad key sk-ant-REDACTED" }))
        ]
        const use = Effect.all([ask(spoken), Effect.exit(ask(spoken))])
        yield* play({ directory, mode: "record", secrets }, script, use)
        const [file] = yield* filesIn(directory)
        const text = file?.text ?? ""
        for (const secret of ["correct", "horse", "0123456789", "abcdefghijk", "plain"]) {
          assert.notInclude(text, secret)
        }
        assert.include(text, `"user": "me"`)
        assert.deepStrictEqual(yield* replay(directory, ask(spoken), { secrets }), ["It is [redacted]."])
      })
    )

    it.effect("keep what was said after an answer was taken back apart from what was said before", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const secrets = [Redacted.make("correct horse")]
        const script = [
          ScriptedProvider.turn(
            Step.text(["It is corr", "ect horse, an"]),
            Step.event({ _tag: "Retracted" }),
            Step.event({ _tag: "TextStart", contentIndex: 0 }),
            Step.event({ _tag: "TextDelta", contentIndex: 0, delta: "Not corr" }),
            Step.event({ _tag: "TextDelta", contentIndex: 0, delta: "ect horse" }),
            Step.event({ _tag: "TextEnd", contentIndex: 0 }),
            Step.finish()
          )
        ]
        yield* play({ directory, mode: "record", secrets }, script, ask(request()))
        const said = yield* replay(directory, Stream.runCollect(stream(request())), { secrets })
        const deltas = said.flatMap((event) => (event._tag === "TextDelta" ? [event.delta] : []))
        assert.deepStrictEqual(deltas, ["It is [redacted], an", "", "Not [redacted]", ""])
      })
    )

    it.effect("know a request as `normalize` shows it", () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const normalize = (request: Provider.ModelRequest) => ({ ...request, system: "Today is some day." })
        const today = (day: string) => request({ system: `Today is ${day}.` })
        const provider = yield* ScriptedProvider.make([ScriptedProvider.text("Hello")])
        yield* Effect.provide(
          ask(today("Monday")),
          Cassette.layer({ directory, mode: "record", normalize })(provider.layer)
        )
        assert.strictEqual((yield* provider.requests)[0]?.system, "Today is Monday.")
        assert.deepStrictEqual(yield* replay(directory, ask(today("Tuesday")), { normalize }), ["Hello"])
      })
    )
  })
})
