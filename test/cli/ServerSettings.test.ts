import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Option, Queue, Redacted } from "effect"
import { TestClock } from "effect/testing"
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import * as ExitCode from "../../src/cli/ExitCode.ts"
import * as TokenFile from "../../src/cli/agent/TokenFile.ts"
import * as Values from "../../src/cli/settings/Values.ts"
import * as DurablePlace from "../../src/cli/agent/DurablePlace.ts"

/** A file that the test writes and reads. */
const file = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tokens-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ),
  (folder) => join(folder, "tokens")
)

/** The tokens of a file with this text. */
const tokensOf = (text: string) =>
  Effect.gen(function* () {
    const path = yield* file
    writeFileSync(path, text)
    return (yield* TokenFile.tokens(Option.some(path), {})).map(Redacted.value)
  }).pipe(Effect.provide(NodeServices.layer))

/** A server with a token file, whose clock and signals are those of the test. */
const watched = Effect.gen(function* () {
  const path = yield* file
  const hangUps = yield* Queue.unbounded<void>()
  const logged: Array<string> = []
  const logger = Logger.make(({ message }) => void logged.push(String(message)))
  // In one step: a read of a file that is being written finds no token.
  const write = (text: string) =>
    Effect.sync(() => {
      writeFileSync(`${path}.new`, text)
      renameSync(`${path}.new`, path)
    })
  yield* write(alice)
  const signals = {
    ending: Effect.never,
    patience: () => Effect.void,
    hangUps: Effect.succeed(hangUps),
    interrupts: Effect.never
  }
  const { tokens } = yield* TokenFile.watched(Option.some(path), {}).pipe(
    Effect.provideService(ExitCode.Signals, signals),
    Effect.provide(Logger.layer([logger]))
  )
  const taken = Effect.map(tokens, (tokens) => tokens.map(Redacted.value))
  /** Lets the real file be read. */
  const until = (done: Effect.Effect<boolean>): Effect.Effect<void> =>
    Effect.flatMap(done, (isDone) =>
      isDone ? Effect.void : Effect.andThen(Effect.promise(setImmediate), until(done))
    )
  const aSecondBefore = (done: Effect.Effect<boolean>) =>
    until(Effect.andThen(TestClock.adjust("1 second"), done))
  return { hangUps, logged, aSecondBefore, taken, until, write }
}).pipe(Effect.provide(NodeServices.layer))

const [alice, bob] = ["a".repeat(16), "b".repeat(16)]

describe("a token file that changes", () => {
  it.effect("gives its new tokens within a second, and takes away the others", () =>
    Effect.gen(function* () {
      const { logged, aSecondBefore, taken, write } = yield* watched
      yield* write(`${alice}\n${bob}\n`)
      yield* aSecondBefore(Effect.map(taken, (tokens) => tokens.includes(bob)))
      yield* write(bob)
      yield* aSecondBefore(Effect.map(taken, (tokens) => !tokens.includes(alice)))
      assert.deepStrictEqual(yield* taken, [bob])
      assert.match(logged.join(), /again, and takes 2 tokens.*again, and takes 1 tokens/)
    })
  )

  it.effect("is read at once at SIGHUP", () =>
    Effect.gen(function* () {
      const { hangUps, taken, until, write } = yield* watched
      yield* write(bob)
      yield* Queue.offer(hangUps, undefined)
      yield* until(Effect.map(taken, (tokens) => tokens.includes(bob)))
      assert.deepStrictEqual(yield* taken, [bob])
    })
  )

  it.effect("leaves the tokens while it is broken, with one warning", () =>
    Effect.gen(function* () {
      const { logged, aSecondBefore, taken, write } = yield* watched
      yield* write("short")
      let seconds = 0
      yield* aSecondBefore(Effect.sync(() => logged.length > 0 && ++seconds > 20))
      assert.deepStrictEqual(yield* taken, [alice])
      yield* write(bob)
      yield* aSecondBefore(Effect.map(taken, (tokens) => tokens.includes(bob)))
      assert.lengthOf(logged, 2)
      assert.match(logged[0] ?? "", /line 1 is no token.* The server takes the tokens that it had\./)
    })
  )
})

describe("--token-file", () => {
  it.effect("has a token on each line, and remarks behind #", () =>
    Effect.gen(function* () {
      const [alice, bob] = ["a".repeat(16), "b-._~+/=".repeat(4)]
      const text = `# token of Alice, do not share\r\n  ${alice} \r\n\r\n\t# of Bob\n${bob}`
      assert.deepStrictEqual(yield* tokensOf(text), [alice, bob])
    })
  )

  it.effect.each([
    {
      text: "# a remark\ncorrect horse battery staple\n",
      why: "line 2 is no token, because it has white space"
    },
    { text: "short\n", why: "line 1 is no token, because it has fewer than 16 characters" },
    { text: "# a remark alone\n", why: "has no token" }
  ])("is refused: $why", ({ text, why }) =>
    Effect.map(Effect.flip(tokensOf(text)), ({ message }) => {
      assert.include(message, why)
      assert.notInclude(message, "horse")
    })
  )
})

describe("--allow-origin", () => {
  it.each([
    { text: "http://localhost:5173/", origin: "http://localhost:5173" },
    { text: "https://chat.example:443", origin: "https://chat.example" },
    { text: "HTTPS://Chat.Example", origin: "https://chat.example" }
  ])("takes $text", ({ origin, text }) => assert.deepStrictEqual(Values.origin(text), Option.some(origin)))

  it.each(["https://chat.example/app", "chat.example", "chat.example:443", "*", "null", "ftp://a"])(
    "refuses %s",
    (text) => assert.deepStrictEqual(Values.origin(text), Option.none())
  )
})

describe("--allow-host", () => {
  it.each([
    { text: "agent.example:8443", name: "agent.example" },
    { text: "Agent.Example", name: "agent.example" },
    { text: "[::1]:80", name: "[::1]" }
  ])("takes $text", ({ name, text }) => assert.deepStrictEqual(Values.hostName(text), Option.some(name)))

  it.each(["https://agent.example", "agent.example/app", "user@agent.example", "", "a b"])(
    "refuses %s",
    (text) => assert.deepStrictEqual(Values.hostName(text), Option.none())
  )
})

describe("workers that start at one moment", () => {
  it.live("listen at a port each", () =>
    Effect.gen(function* () {
      const count = 8
      const bound = yield* Effect.all(
        Array.from({ length: count }, () => DurablePlace.listenAt("127.0.0.1", undefined)),
        { concurrency: count }
      )
      assert.strictEqual(new Set(bound.map(({ port }) => port)).size, count)
      const taken = yield* Effect.flip(DurablePlace.listenAt("127.0.0.1", bound[0]?.port))
      assert.strictEqual(taken._tag, "SocketServerError")
    }).pipe(Effect.scoped)
  )
})
