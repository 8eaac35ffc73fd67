import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { execFile } from "node:child_process"
import { globSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { nodes } from "./nodes.ts"

const repo = join(import.meta.dirname, "../..")
const examples = globSync("examples/*.ts", { cwd: repo }).sort()

/** Runs `use` with the address of a server whose model calls the weather tool, and then answers. */
const withServer = async <A>(use: (url: string) => Promise<A>): Promise<A> => {
  const mock = new LLMock({ port: 0 })
  mock.on({ hasToolResult: false }, { toolCalls: [{ name: "weather", arguments: '{"city":"Oslo"}' }] })
  mock.on({ hasToolResult: true }, { content: "Yes: 4 °C and rain." })
  await mock.start()
  try {
    return await use(`${mock.url}/v1`)
  } finally {
    await mock.stop()
  }
}

const runExample = (node: string, file: string) =>
  withServer(async (url) => {
    const args = [
      "--disable-warning=ExperimentalWarning",
      "--conditions",
      "effect-agent-source",
      join(repo, file)
    ]
    const env = { ...process.env, OPENAI_API_KEY: "test", OPENAI_BASE_URL: url }
    return promisify(execFile)(node, args, { env, timeout: 60_000 })
  })

const says: Readonly<Record<string, string>> = {
  "examples/approvals.ts": "May the agent run remove",
  "examples/chat.ts": "200 v1",
  "examples/costs.ts": "1200 tokens in, 40 out, $",
  "examples/errors.ts": "Yes.\nno answer: Unauthenticated",
  "examples/handler.ts": "201",
  "examples/local.ts": "ollama",
  "examples/mcp.ts": "mcp__files__now",
  "examples/services.ts": "to ada@example.com",
  "examples/sessions.ts": "user assistant user assistant",
  "examples/streaming.ts": "> weather",
  "examples/time.ts": "timed out after 30s",
  "examples/quickstart.ts": "Yes: 4 °C and rain.",
  "examples/plain.ts": "Yes: 4 °C and rain.",
  "examples/promises.ts": "remove rejected",
  "examples/from-codelet.ts": "toolResult hi",
  "examples/from-karl.ts": "read false\nMilk.",
  "examples/from-lemon.ts": "add success\n2 + 3? ·  · 5 · 5 · Sure? · Yes.",
  "examples/from-oneringai.ts": "4 °C in Oslo.\n2 1",
  "examples/from-pi.ts": "turn_end\nAnd an umbrella.",
  "examples/guards.ts": "Tool execution was rejected: notes stay",
  "examples/control.ts": "cancelled",
  "examples/migration.ts": "I wrote one.",
  "examples/providers.ts": "Yes. 2"
}

describe.each(nodes)("on $name", ({ path }) => {
  it.concurrent.each(examples)("%s runs", { timeout: 90_000 }, async (file) => {
    const { stderr, stdout } = await runExample(path, file)
    assert.include(stdout, says[file] ?? "")
    assert.notStrictEqual(stdout, "")
    assert.strictEqual(stderr, "")
  })
})
