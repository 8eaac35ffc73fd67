import { assert, describe, it } from "@effect/vitest"
import { LLMock } from "@copilotkit/aimock"
import { execFile } from "node:child_process"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { promisify } from "node:util"

const root = join(import.meta.dirname, "..")
const read = (file: string) => readFileSync(join(root, file), "utf8")
const examples = globSync("scratchpad/*.ts", { cwd: root }).sort()

/** A server that has the model call the weather tool, and then answer. */
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

const runExample = async (file: string): Promise<string> =>
  withServer(async (url) => {
    const args = ["--conditions", "effect-agent-source", join(root, file)]
    const env = { ...process.env, OPENAI_API_KEY: "test", OPENAI_BASE_URL: url }
    const { stdout } = await promisify(execFile)(process.execPath, args, { env, timeout: 20_000 })
    return stdout
  })

describe("README", () => {
  const blocks = [...read("README.md").matchAll(/```ts\n\/\/ (scratchpad\/\w+\.ts)\n([^]*?)```/g)]

  it("shows code", () => {
    assert.isAtLeast(blocks.length, 5)
    assert.strictEqual(blocks.length, [...read("README.md").matchAll(/```ts\n/g)].length)
  })

  it.each(blocks.map(([, file = "", code = ""]) => [file, code] as const))(
    "shows %s as it is",
    (file, code) => {
      assert.strictEqual(code, read(file))
    }
  )

  it("stays within 400 lines, AGENTS.md within 80", () => {
    assert.isAtMost(read("README.md").split("\n").length, 400)
    assert.isAtMost(read("AGENTS.md").split("\n").length, 80)
  })

  it("names every service, ring and edge that is there", () => {
    const text = read("README.md")
    const modules = globSync("*.ts", { cwd: join(root, "src") }).filter((file) => file !== "index.ts")
    const missing = modules.filter((file) => !text.includes(file.replace(/\.ts$/, "")))
    assert.deepStrictEqual(missing, [])
  })
})

describe("examples", () => {
  const says: Readonly<Record<string, string>> = {
    "scratchpad/quickstart.ts": "Yes: 4 °C and rain.",
    "scratchpad/plain.ts": "Yes: 4 °C and rain.",
    "scratchpad/guards.ts": "Tool execution was rejected: not on a Friday",
    "scratchpad/control.ts": "cancelled",
    "scratchpad/providers.ts": "ECONNREFUSED"
  }

  it.concurrent.each(examples)("%s runs", { timeout: 30_000 }, async (file) => {
    const stdout = await runExample(file)
    assert.include(stdout, says[file] ?? "")
    assert.notStrictEqual(stdout, "")
  })
})
