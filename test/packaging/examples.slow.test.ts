import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { execFile } from "node:child_process"
import { globSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"
import { nodes } from "./nodes.ts"

const repo = join(import.meta.dirname, "../..")
const examples = globSync("scratchpad/*.ts", { cwd: repo }).sort()

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
  "scratchpad/quickstart.ts": "Yes: 4 °C and rain.",
  "scratchpad/plain.ts": "Yes: 4 °C and rain.",
  "scratchpad/promises.ts": "remove rejected",
  "scratchpad/guards.ts": "Tool execution was rejected: notes stay",
  "scratchpad/control.ts": "cancelled",
  "scratchpad/migration.ts": "I wrote one.",
  "scratchpad/providers.ts": "Yes. 2"
}

describe.each(nodes)("on $name", ({ path }) => {
  it.concurrent.each(examples)("%s runs", { timeout: 90_000 }, async (file) => {
    const { stderr, stdout } = await runExample(path, file)
    assert.include(stdout, says[file] ?? "")
    assert.notStrictEqual(stdout, "")
    assert.strictEqual(stderr, "")
  })
})
