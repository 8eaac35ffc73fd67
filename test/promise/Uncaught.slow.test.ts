import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll } from "vitest"

const repo = join(import.meta.dirname, "../..")
// Inside the repository, so that its packages are found, where git does not look.
mkdirSync(join(repo, "examples/.review"), { recursive: true })
const home = mkdtempSync(join(repo, "examples/.review/uncaught-"))
afterAll(() => rmSync(home, { recursive: true, force: true }))

/** What Node prints of a program that fails, line by line. */
const stderrOf = (source: string): ReadonlyArray<string> => {
  const file = join(home, "app.mjs")
  writeFileSync(file, source)
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--conditions", "effect-agent-source", "--no-warnings", file],
    { cwd: home, encoding: "utf8", env: { PATH: process.env["PATH"] } }
  )
  assert.strictEqual(status, 1, stderr)
  return stderr.trimEnd().split("\n")
}

const assertShort = (lines: ReadonlyArray<string>, said: RegExp) => {
  assert.isAtMost(lines.length, 15, lines.join("\n"))
  assert.match(lines.join("\n"), said)
}

const effects = (provider: string) => `
import { Effect, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import { Agent, Run } from "effect-agent"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
const program = Effect.scoped(Effect.gen(function* () {
  const agent = yield* Agent.make({ model: "gpt-5.5" })
  return yield* agent.prompt("hi")
}))
await Effect.runPromise(program.pipe(Effect.provide(${provider}), Effect.provide(FetchHttpClient.layer)))
`

const promises = (provider: string, ask: string, before = "") => `
import { Redacted } from "effect"
import { createAgent } from "effect-agent/promise"
import { Anthropic, Google, OpenAi, OpenAiCompatible } from "effect-agent/providers"
import { Tool } from "effect-agent"
const agent = createAgent({ model: "gpt-5.5", provider: ${provider} })
${before}
async function main() {
  ${ask}
}
await main()
`

const unreachable = `OpenAi.layer({ apiKey: Redacted.make("sk-test-key"), baseUrl: "http://127.0.0.1:59999/v1" })`

describe("an error that a program does not catch", { timeout: 60_000 }, () => {
  it("is short with Effect.runPromise: a missing key", () => {
    assertShort(stderrOf(effects("OpenAi.layerConfig()")), /OPENAI_API_KEY is not set/)
  })

  it.each([
    ["Anthropic.layerConfig()", /ANTHROPIC_API_KEY is not set, nor is ANTHROPIC_AUTH_TOKEN\./],
    [
      "Google.layerConfig()",
      /GEMINI_API_KEY is not set, nor is GOOGLE_API_KEY or GOOGLE_GENERATIVE_AI_API_KEY\./
    ],
    ["OpenAiCompatible.layerConfig(OpenAiCompatible.presets.groq)", /GROQ_API_KEY is not set\./]
  ])("is short with Effect.runPromise: a missing key of %s", (provider, said) => {
    assertShort(stderrOf(effects(provider)), said)
  })

  it("is short with Effect.runPromise: no network", () => {
    assertShort(stderrOf(effects(unreachable)), /RunFailed: openai: Transport: .*127\.0\.0\.1:59999/)
  })
  const prompt = `await agent.prompt("hi")`
  const stream = `for await (const event of agent.stream("hi")) void event`
  it.each([
    ["prompt", prompt],
    ["stream", stream]
  ])("names the line that called %s of the promise agent", (_, ask) => {
    for (const [provider, said] of [
      ["OpenAi.layerConfig()", /OPENAI_API_KEY is not set/],
      [unreachable, /RunFailed: openai: Transport: .*127\.0\.0\.1:59999/]
    ] as const) {
      const lines = stderrOf(promises(provider, ask))
      assertShort(lines, said)
      assert.match(lines.join("\n"), /at .*main .*app\.mjs:9:/)
    }
  })
})
