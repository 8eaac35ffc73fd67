import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { bundled, calls, folder, run, says, server } from "./program.ts"

bundled()

const key = "sk-typed-by-a-person"

describe("a key that was entered", () => {
  it.live(
    "goes to its vendor, and neither to commands nor to the output",
    () =>
      Effect.gen(function* () {
        const config = folder({ "effect-agent/credentials.json": JSON.stringify({ openai: key }) })
        const results: Array<string> = []
        const authorized = new Set<string | undefined>()
        const url = yield* server((request, body, response) => {
          authorized.add(request.headers.authorization)
          const last = JSON.parse(body).messages.at(-1)
          if (last.role !== "tool") return calls(response, "shell", { command: "env" })
          results.push(last.content)
          return says(response, ["done"])
        })
        const model = ["--model", "openai-chat/m", "--base-url", `${url}/v1`, "--no-session", "--yes"]
        const ended = yield* run([...model, "go"], {
          cwd: folder({}),
          env: { XDG_CONFIG_HOME: config, EFFECT_AGENT_HOME: join(config, "data") }
        })
        assert.deepStrictEqual([ended.code, ended.stdout], [0, "done\n"], ended.stderr)
        assert.deepStrictEqual([...authorized], [`Bearer ${key}`])
        assert.include(results.join(""), "XDG_CONFIG_HOME")
        assert.notInclude(JSON.stringify([results, ended]), key)
      }).pipe(Effect.scoped),
    120_000
  )
})
