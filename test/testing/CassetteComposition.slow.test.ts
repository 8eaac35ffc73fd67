import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Duration, Effect, Fiber, FileSystem, type Layer, type Path, Schedule, Stream } from "effect"
import { Message, ModelEvent, Provider, ProviderError } from "effect-agent"
import { Fallback, Retry } from "effect-agent/resilience"
import { Cassette, ScriptedProvider, Step } from "effect-agent/testing"
import { TestClock } from "effect/testing"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"

const busy = ScriptedProvider.fail(new ProviderError.Overloaded({ detail: "busy" }))
const now = Retry.layer({ schedule: Schedule.recurs(1) })
const retryTurn = Retry.layer({ schedule: Schedule.recurs(1), retryTurn: true })
const down = ScriptedProvider.layer([busy, busy], { id: "down" })
const up = ScriptedProvider.layer([ScriptedProvider.text("ok")], { id: "up" })
const flaky = ScriptedProvider.layer([busy, ScriptedProvider.text("ok")], { id: "flaky" })
const broken = ScriptedProvider.layer(
  [
    ScriptedProvider.turn(
      Step.start,
      Step.text("Hel"),
      Step.fail(new ProviderError.Overloaded({ detail: "busy" }))
    ),
    ScriptedProvider.text("Hello")
  ],
  { id: "broken" }
)

type Answers = Layer.Layer<Provider.Provider, never, FileSystem.FileSystem | Path.Path>
/** A cassette of this name, in a mode that the test chooses. */
type Tape = (name: string) => (inner: Answers) => Answers

const compositions: Readonly<Record<string, (tape: Tape) => Answers>> = {
  "inside Retry": (tape) => now(tape("a")(flaky)),
  "around Retry": (tape) => tape("a")(now(flaky)),
  "inside a Retry of turns": (tape) => retryTurn(tape("a")(broken)),
  "around a Retry of turns": (tape) => tape("a")(retryTurn(broken)),
  "inside Fallback": (tape) => Fallback.layer([tape("a")(down), tape("b")(up)]),
  "around Fallback": (tape) => tape("a")(Fallback.layer([down, up])),
  "inside Retry inside Fallback": (tape) => Fallback.layer([now(tape("a")(down)), now(tape("b")(flaky))]),
  "around Retry inside Fallback": (tape) => Fallback.layer([tape("a")(now(down)), tape("b")(now(flaky))]),
  "inside Fallback inside Retry": (tape) =>
    retryTurn(Fallback.layer([tape("a")(down), { layer: tape("b")(flaky), model: "other" }])),
  "around Retry around Fallback": (tape) => tape("a")(now(Fallback.layer([down, flaky])))
}

const request: Provider.ModelRequest = { model: "m", messages: [Message.user("Hi")], tools: [], options: {} }

const ask = Effect.flatMap(Provider.Provider, (provider) => Stream.runCollect(provider.stream(request)))

const textOf = (events: ReadonlyArray<ModelEvent.ModelEvent>) =>
  events
    .reduce(ModelEvent.append, ModelEvent.emptyReply)
    .content.map((block) => (block.type === "text" ? block.text : ""))
    .join("")

const folder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

it.layer(NodeServices.layer)("a cassette", (it) => {
  for (const [where, compose] of Object.entries(compositions)) {
    it.effect(`${where} plays what happened`, () =>
      Effect.gen(function* () {
        const directory = yield* folder
        const tape =
          (mode: Cassette.Mode): Tape =>
          (name) =>
            Cassette.layer({ directory: join(directory, name), mode })
        const live = yield* Effect.provide(ask, compose(tape("record")))
        assert.include(["ok", "Hello"], textOf(live))
        assert.isAbove(live.filter(({ _tag }) => _tag === "Attempt").length, 0)
        assert.deepStrictEqual(yield* Effect.provide(ask, compose(tape("replay"))), live)
        assert.deepStrictEqual(yield* Effect.provide(ask, compose(tape("auto"))), live)
      })
    )
  }

  it.effect("waits as Retry does when it is inside, and not at all around it", () =>
    Effect.gen(function* () {
      const [inside, around] = [yield* folder, yield* folder]
      const limited = () =>
        ScriptedProvider.layer([
          ScriptedProvider.fail(
            new ProviderError.RateLimited({ detail: "slow down", retryAfter: Duration.seconds(30) })
          ),
          ScriptedProvider.text("ok")
        ])
      const inRetry = (mode: Cassette.Mode) =>
        Retry.layer()(Cassette.layer({ directory: inside, mode })(limited()))
      const onRetry = (mode: Cassette.Mode) =>
        Cassette.layer({ directory: around, mode })(Retry.layer()(limited()))
      for (const layer of [inRetry("record"), onRetry("record"), inRetry("replay")]) {
        const began = yield* Clock.currentTimeMillis
        const fiber = yield* Effect.forkChild(Effect.provide(ask, layer))
        // Files are read and written in real time: the clock goes on whenever nothing else does.
        while (fiber.pollUnsafe() === undefined) {
          yield* TestClock.adjust("1 second")
          yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        }
        assert.strictEqual(textOf(yield* Fiber.join(fiber)), "ok")
        assert.isAtLeast((yield* Clock.currentTimeMillis) - began, 30_000)
      }
      assert.strictEqual(textOf(yield* Effect.provide(ask, onRetry("replay"))), "ok")
    })
  )

  it.effect("that has no recording is not asked again, and its reason comes through", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const empty = Cassette.layer({ directory, mode: "replay" })(up)
      const events = yield* Effect.flip(Effect.provide(ask, now(Fallback.layer([now(empty), empty]))))
      assert.strictEqual(events.reason._tag, "InvalidRequest")
      assert.include(events.reason.detail, "was not recorded")
    })
  )
})

describe("examples/resilience.ts", () => {
  it("tells what happened", { timeout: 60_000 }, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ["--conditions", "effect-agent-source", "examples/resilience.ts"],
      { cwd: join(import.meta.dirname, "../..") }
    )
    const happened = [
      "  attempt 1: primary: Overloaded: at capacity",
      "  attempt 1: primary: Overloaded: still at capacity",
      "  backup: Yes: it is 4 °C."
    ]
    assert.deepStrictEqual(stdout.trimEnd().split("\n"), [
      "record",
      ...happened,
      "replay: nobody is asked",
      ...happened,
      "replay of another question",
      "  cassette: (nothing)",
      '  differs at messages[0].content[0].text: "Do I need a coat in Oslo?" recorded, "Do I need a hat in Oslo?" requested'
    ])
  })
})
