import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent } from "effect-agent"
import { ScriptedProvider } from "effect-agent/testing"
import { Tools } from "effect-agent/tools"
import * as Vendors from "../../src/cli/agent/Vendors.ts"
import * as Program from "../cli/program.ts"
import { listening } from "./secrets/drive.ts"
import { dotEnv, environment, found } from "./secrets/planted.ts"
import { echoOf, shapes } from "./secrets/shapes.ts"

Program.bundled()

const files = { ".env": dotEnv, "a.txt": "a" }
const keyNames = Vendors.companies.flatMap(({ keyNames }) => keyNames)

// Answers after which nothing is asked again.
const tried = [
  ["status 401", "--verbose"],
  ["status 401", "--json"],
  ["slashes escaped, as PHP does", "--verbose"],
  ["a redirect to another origin", "--verbose"],
  ["no JSON", "--json"],
  ["members of another shape", "--verbose"]
] as const

describe.concurrent("secrets of the program", { timeout: 60_000 }, () => {
  it.effect.each(tried)("F150: are not in what it prints after %s, with %s", ([name, flag]) =>
    Effect.gen(function* () {
      const shape = shapes.find((each) => each.name === name)
      let echo = ""
      const origin = yield* Program.server((request, _, response) => {
        echo = echoOf(request)
        shape?.answer({ request, response, language: "chat", echo })
      })
      const options = { cwd: Program.folder(files), env: environment(keyNames, origin) }
      const { code, stderr, stdout } = yield* Program.run([flag, "-m", "openai/m", "hi"], options)
      assert.strictEqual(code, 1)
      assert.isNotEmpty(found(echo))
      assert.deepStrictEqual(found(stdout + stderr), [])
      assert.match(stdout + stderr, /openai/)
    })
  )

  it.effect("F150: are not in what it prints when it works, and reads no .env file by itself", () =>
    Effect.gen(function* () {
      const cwd = Program.folder(files)
      const env = { ...environment(keyNames, "http://127.0.0.1:9"), EFFECT_AGENT_MODEL: "local/rules" }
      for (const flags of [["--verbose"], ["--json"]]) {
        const args = [...flags, "--yes", "list, find *.txt, grep PASS in a.txt and run env"]
        const { code, stderr, stdout } = yield* Program.run(args, { cwd, env })
        assert.strictEqual(code, 0)
        assert.match(stdout, /a\.txt/)
        assert.deepStrictEqual(found(stdout + stderr), [])
      }
    })
  )

  it.live("F150: that a tool was made to read are where it says, and in no log and no span", () =>
    Effect.gen(function* () {
      const root = Program.folder(files)
      const calls = [
        { name: "read", params: { path: ".env" } },
        { name: "edit", params: { path: ".env", oldText: dotEnv, newText: dotEnv } },
        { name: "write", params: { path: "../.env", content: dotEnv } },
        { name: "shell", params: { command: `cat .env; exit 3` } }
      ]
      const provider = ScriptedProvider.layer([
        ScriptedProvider.toolCalls(...calls),
        ScriptedProvider.text("done")
      ])
      const events: Array<string> = []
      const { logs, spans } = yield* listening(
        Effect.scoped(
          Effect.gen(function* () {
            const agent = yield* Agent.make({ model: "m", tools: Tools.make({ root }) })
            yield* Stream.runForEach(agent.stream("go"), (event) =>
              Effect.sync(() => events.push(JSON.stringify(event)))
            )
          })
        ).pipe(Effect.provide(provider))
      )
      assert.isNotEmpty(found(events.join("\n")))
      assert.include(spans, "invoke_agent")
      assert.deepStrictEqual(found(logs + spans), [])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
