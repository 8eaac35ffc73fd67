import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as core from "effect-agent"
import * as acp from "effect-agent/acp"
import * as ai from "effect-agent/ai"
import * as aiSdk from "effect-agent/ai-sdk"
import * as aiSdkUi from "effect-agent/ai-sdk-ui"
import * as agUi from "effect-agent/ag-ui"
import * as api from "effect-agent/api"
import * as artifacts from "effect-agent/artifacts"
import * as client from "effect-agent/client"
import * as context from "effect-agent/context"
import * as compat from "effect-agent/compat"
import * as durable from "effect-agent/durable"
import * as guardrails from "effect-agent/guardrails"
import * as mcp from "effect-agent/mcp"
import * as node from "effect-agent/node"
import * as prices from "effect-agent/prices"
import * as promise from "effect-agent/promise"
import * as providers from "effect-agent/providers"
import * as proxy from "effect-agent/proxy"
import * as resilience from "effect-agent/resilience"
import * as runs from "effect-agent/runs"
import * as server from "effect-agent/server"
import * as sessions from "effect-agent/sessions"
import * as skills from "effect-agent/skills"
import * as steps from "effect-agent/steps"
import * as testing from "effect-agent/testing"
import * as toolSearch from "effect-agent/tool-search"
import * as tools from "effect-agent/tools"
import * as view from "effect-agent/view"
import { publicModules, subpathOf } from "../scripts/publicModules.ts"

const manifest = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8"))
const modules = {
  acp,
  api,
  artifacts,
  ai,
  client,
  "ai-sdk": aiSdk,
  "ai-sdk-ui": aiSdkUi,
  "ag-ui": agUi,
  core,
  durable,
  compat,
  guardrails,
  context,
  mcp,
  node,
  prices,
  promise,
  providers,
  proxy,
  resilience,
  runs,
  server,
  sessions,
  skills,
  steps,
  testing,
  "tool-search": toolSearch,
  tools,
  view
}

/** The public names. A change here is a change for every user: it belongs in the changelog. */
describe("exports", () => {
  it("are these", () => {
    const names = Object.fromEntries(
      Object.entries(modules).map(([entry, module]) => [entry, Object.keys(module).sort()])
    )
    const pinned: unknown = JSON.parse(readFileSync(join(import.meta.dirname, "exports.json"), "utf8"))
    assert.deepStrictEqual(names, pinned)
  })

  it("have a subpath for each edge and each namespace, and none for what is internal", () => {
    const target = (file: string) => ({
      "effect-agent-source": `./src/${file}.ts`,
      types: `./dist/${file}.d.ts`,
      default: `./dist/${file}.js`
    })
    const barrels = publicModules.filter((module) => module.endsWith("index"))
    assert.sameMembers(
      barrels.map((module) => subpathOf(module).slice(2) || "core"),
      Object.keys(modules)
    )
    assert.deepStrictEqual(manifest.exports, {
      "./package.json": "./package.json",
      "./internal/*": null,
      "./*/internal/*": null,
      "./cli/*": null,
      ...Object.fromEntries(barrels.map((module) => [subpathOf(module), target(module)])),
      "./*": target("*")
    })
  })
})
