import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { ToolRegistry } from "effect-agent"
import { Tools } from "effect-agent/tools"
import * as Workspace from "./workspace.ts"

describe("Tools", () => {
  it("names its tools in order, and those that change something", () => {
    const tools = Tools.make({ root: "." })
    assert.deepStrictEqual(
      tools.map((tool) => tool.name),
      [...Tools.names]
    )
    assert.deepStrictEqual(
      tools.map((tool) => tool.name).filter((name) => Tools.changing.has(name)),
      ["write", "edit", "shell"]
    )
  })

  it.live("tells the model of each tool and its params", () =>
    Effect.gen(function* () {
      const registry = yield* ToolRegistry.make(...Tools.make({ root: "." }))
      for (const { description, name, parameters } of yield* registry.definitions) {
        assert.isAbove(description.length, 40, name)
        const { properties, type } = yield* Schema.decodeUnknownEffect(ParametersOf)(parameters)
        assert.strictEqual(type, "object")
        for (const [key, property] of Object.entries(properties)) {
          assert.isDefined(property.description, `${name}.${key} has no description`)
        }
      }
    }).pipe(Workspace.provide)
  )

  it.live("can be a part of the tools", () =>
    Effect.gen(function* () {
      const readOnly = Tools.make({ root: "." }).filter((tool) => !Tools.changing.has(tool.name))
      const registry = yield* ToolRegistry.make(...readOnly)
      const definitions = yield* registry.definitions
      assert.deepStrictEqual(
        definitions.map((definition) => definition.name),
        ["read", "list", "find", "grep"]
      )
    }).pipe(Workspace.provide)
  )

  it.live("does a piece of work through the registry", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make({ "src/sum.js": "module.exports = (a, b) => a - b\n" })
      assert.strictEqual((yield* call("find", { pattern: "*.js" })).text, "src/sum.js")
      assert.include((yield* call("grep", { pattern: "a - b" })).text, "src/sum.js:1:")
      yield* call("edit", { path: "src/sum.js", oldText: "a - b", newText: "a + b" })
      yield* call("write", { path: "test.js", content: 'console.log(require("./src/sum.js")(2, 3))\n' })
      const { outcome, text } = yield* call("shell", { command: "node test.js" })
      assert.strictEqual(text, "5")
      assert.strictEqual(outcome, "success")
    }).pipe(Workspace.provide)
  )

  it.live("answers a failure as an error with its type in the details", () =>
    Effect.gen(function* () {
      const { call } = yield* Workspace.make()
      const { details, outcome } = yield* call("read", { path: "../x" })
      assert.strictEqual(outcome, "error")
      assert.deepInclude(details, { _tag: "PathRefused", path: "../x" })
    }).pipe(Workspace.provide)
  )
})

const ParametersOf = Schema.Struct({
  type: Schema.String,
  properties: Schema.Record(Schema.String, Schema.Struct({ description: Schema.optionalKey(Schema.String) }))
})
