import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as core from "effect-agent"
import * as ai from "effect-agent/ai"
import * as compat from "effect-agent/compat"
import * as node from "effect-agent/node"
import * as promise from "effect-agent/promise"
import * as providers from "effect-agent/providers"
import * as resilience from "effect-agent/resilience"
import * as testing from "effect-agent/testing"
import * as tools from "effect-agent/tools"

/** The public names. A change here is a change for every user: it belongs in the changelog. */
describe("exports", () => {
  it("are these", () => {
    const names = Object.fromEntries(
      Object.entries({ ai, core, compat, node, promise, providers, resilience, testing, tools }).map(
        ([entry, module]) => [entry, Object.keys(module).sort()]
      )
    )
    const pinned: unknown = JSON.parse(readFileSync(join(import.meta.dirname, "exports.json"), "utf8"))
    assert.deepStrictEqual(names, pinned)
  })
})
