import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as ServerOptions from "../../src/cli/ServerOptions.ts"
import * as WorkerSocket from "../../src/cli/WorkerSocket.ts"

/** The tokens of a file with this text. */
const tokensOf = (text: string) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "tokens-"))),
    (folder) => {
      const file = join(folder, "tokens")
      writeFileSync(file, text)
      return Effect.map(ServerOptions.tokens(Option.some(file), {}), (found) => found.map(Redacted.value))
    },
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  ).pipe(Effect.provide(NodeServices.layer))

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
  it.effect.each([
    { text: "http://localhost:5173/", origin: "http://localhost:5173" },
    { text: "https://chat.example:443", origin: "https://chat.example" },
    { text: "HTTPS://Chat.Example", origin: "https://chat.example" }
  ])("takes $text", ({ origin, text }) =>
    Effect.map(ServerOptions.origin(text), (found) => assert.strictEqual(found, origin))
  )

  it.effect.each(["https://chat.example/app", "chat.example", "chat.example:443", "*", "null", "ftp://a"])(
    "refuses %s",
    (text) =>
      Effect.map(Effect.flip(ServerOptions.origin(text)), ({ message }) =>
        assert.include(message, `--allow-origin: ${text} is no origin`)
      )
  )
})

describe("--allow-host", () => {
  it.effect.each([
    { text: "agent.example:8443", name: "agent.example" },
    { text: "Agent.Example", name: "agent.example" },
    { text: "[::1]:80", name: "[::1]" }
  ])("takes $text", ({ name, text }) =>
    Effect.map(ServerOptions.hostName(text), (found) => assert.strictEqual(found, name))
  )

  it.effect.each(["https://agent.example", "agent.example/app", "user@agent.example", "", "a b"])(
    "refuses %s",
    (text) =>
      Effect.map(Effect.flip(ServerOptions.hostName(text)), ({ message }) =>
        assert.include(message, "--allow-host: ")
      )
  )
})

describe("workers that start at one moment", () => {
  it.live("listen at a port each", () =>
    Effect.gen(function* () {
      const count = 8
      const bound = yield* Effect.all(
        Array.from({ length: count }, () => WorkerSocket.listen("127.0.0.1", undefined)),
        { concurrency: count }
      )
      assert.strictEqual(new Set(bound.map(({ port }) => port)).size, count)
      const taken = yield* Effect.flip(WorkerSocket.listen("127.0.0.1", bound[0]?.port))
      assert.strictEqual(taken._tag, "SocketServerError")
    }).pipe(Effect.scoped)
  )
})
