import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Program from "./program.ts"

Program.bundled()

const keyed = (url: string) => ({ OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` })

describe.concurrent("flags", { timeout: 30_000 }, () => {
  it.effect("--fallback-model asks the next model when one fails", () =>
    Effect.gen(function* () {
      const seen: Array<readonly [model: string, effort: unknown]> = []
      const url = yield* Program.server((_, body, response) => {
        const { model, reasoning } = JSON.parse(body)
        seen.push([model, reasoning?.effort])
        if (model === "gpt-5.5") {
          response.writeHead(401, { "content-type": "application/json" })
          response.end(`{"error":{"message":"no","type":"invalid_request_error"}}`)
        } else Program.says(response, ["spare"])
      })
      const args = ["-m", "openai/gpt-5.5:high", "--fallback-model", "openai/gpt-5.4:low,openai/o3", "hi"]
      const { code, stderr, stdout } = yield* Program.run(args, { env: keyed(url) })
      assert.deepStrictEqual([code, stdout], [0, "spare\n"])
      assert.match(stderr, /Model: openai\/gpt-5\.5 \(--model; then openai\/gpt-5\.4, openai\/o3\)/)
      assert.deepStrictEqual(seen, [
        ["gpt-5.5", "high"],
        ["gpt-5.4", "low"]
      ])
      const keyless = yield* Program.run(["--fallback-model", "groq/x", "hi"], { env: keyed(url) })
      assert.strictEqual(keyless.code, 2)
      assert.match(keyless.stderr, /groq needs a key: set GROQ_API_KEY/)
    })
  )

  it.effect("--max-cost and --max-tokens-total end a run", () =>
    Effect.gen(function* () {
      const url = yield* Program.server((_, __, response) => Program.calls(response, "list", {}))
      const tokens = yield* Program.run(["--max-tokens-total", "3", "hi"], { env: keyed(url) })
      assert.strictEqual(tokens.code, 3)
      const cost = yield* Program.run(["--max-cost", "0.000001", "hi"], { env: keyed(url) })
      assert.strictEqual(cost.code, 3)
    })
  )

  it.effect("--append-system follows the system prompt", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const url = yield* Program.server((_, body, response) => {
        seen.push(JSON.stringify(JSON.parse(body)))
        Program.says(response, ["Hi"])
      })
      yield* Program.run(["--append-system", "Be brave.", "hi"], { env: keyed(url) })
      yield* Program.run(["hi"], {
        env: { ...keyed(url), EFFECT_AGENT_SYSTEM: "Be short.", EFFECT_AGENT_APPEND_SYSTEM: "Be kind." }
      })
      assert.match(seen[0] ?? "", /in plain text\.\\n\\nBe brave\./)
      assert.include(seen[1] ?? "", `Be short.\\n\\nBe kind.`)
    })
  )

  it.effect("--approve says what becomes of calls that need an approval", () =>
    Effect.gen(function* () {
      const run = (...args: ReadonlyArray<string>) =>
        Effect.map(Program.run([...args, "run true"]), ({ code }) => code)
      assert.deepStrictEqual(
        yield* Effect.all([
          run("--approve", "allow"),
          run("--approve", "deny"),
          run("--approve", "deny", "--yes"),
          run("--approve", "deny", "--allow", "shell(true)"),
          run("--approve", "allow", "--deny", "shell"),
          run("--allow", "shell", "--deny", "shell(true)")
        ]),
        [0, 5, 0, 0, 5, 5]
      )
    })
  )
})
