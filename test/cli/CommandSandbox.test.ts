import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { resolve } from "node:path"
import * as AgentSetup from "../../src/cli/agent/AgentSetup.ts"
import type { StoreAddress } from "../../src/cli/settings/Values.ts"

const given = {
  cwd: "project",
  mcpConfig: Option.some("mcp.json"),
  network: false,
  passEnv: [],
  sandbox: "auto" as const,
  store: Option.none<StoreAddress>(),
  tools: ["shell" as const],
  writable: []
}

const hiddenOf = (changed: Partial<typeof given>, tokenFile?: string) =>
  AgentSetup.chooseSandbox({ ...given, sandbox: "auto", ...changed }, Option.fromUndefinedOr(tokenFile)).pipe(
    Effect.map(({ options }) => options.hidden ?? []),
    Effect.provide(NodeServices.layer)
  )

describe("the sandbox of the program", () => {
  it.effect("hides the file of tokens, that of MCP servers, and the place of sessions", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* hiddenOf({}, "tokens"), [resolve("mcp.json"), resolve("tokens")])
      const files = yield* hiddenOf({ store: Option.some({ _tag: "Files", directory: "kept" }) })
      assert.deepStrictEqual(files, [resolve("mcp.json"), resolve("kept")])
      const database = yield* hiddenOf({ store: Option.some({ _tag: "Sqlite", filename: "/data/s.db" }) })
      assert.includeMembers([...database], ["/data/s.db", "/data/s.db-wal", "/data/s.db-shm"])
    })
  )

  it.effect("shows the servers that the project itself names, so that git finds the file", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* hiddenOf({ mcpConfig: Option.some("project/.mcp.json") }), [])
      const beside = yield* hiddenOf({ mcpConfig: Option.some("project-2/mcp.json") })
      assert.deepStrictEqual(beside, [resolve("project-2/mcp.json")])
    })
  )
})
