import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { Provider } from "effect-agent"
import { mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Credentials from "../../src/cli/agent/Credentials.ts"
import * as ModelChoice from "../../src/cli/agent/ModelChoice.ts"

const key = Redacted.make("sk-ant-typed")

/** The environment of a user of their own. */
const user = () => {
  const env = { XDG_CONFIG_HOME: mkdtempSync(join(tmpdir(), "credentials-")) }
  return { env, file: join(env.XDG_CONFIG_HOME, "effect-agent", "credentials.json") }
}

const choose = (env: Readonly<Record<string, string>>) =>
  ModelChoice.choose({ model: Option.none(), baseUrl: Option.none(), noDetect: true }, env)

describe("keys of vendors", () => {
  it.effect("are kept for the user alone, count from then on, and are never listed", () =>
    Effect.gen(function* () {
      const { env, file } = user()
      assert.strictEqual((yield* choose(env)).model, "local/rules")
      yield* Credentials.set("anthropic", key, env)
      assert.strictEqual(statSync(file).mode & 0o777, 0o600)
      assert.deepStrictEqual(JSON.parse(readFileSync(file, "utf8")), { anthropic: "sk-ant-typed" })
      const choice = yield* choose(env)
      assert.match(choice.model, /^anthropic\//)
      assert.strictEqual(choice.why, "its key was entered with /login")
      const rows = yield* Credentials.list(env)
      assert.deepStrictEqual(rows[0], { vendor: "anthropic", key: "file" })
      assert.deepStrictEqual(rows[1], { vendor: "openai", key: undefined })
      assert.notInclude(JSON.stringify(rows), "sk-ant")
      assert.notProperty(process.env, "ANTHROPIC_API_KEY")
      assert.isTrue(yield* Credentials.remove("anthropic", env))
      assert.isFalse(yield* Credentials.remove("anthropic", env))
      assert.strictEqual((yield* choose(env)).model, "local/rules")
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("reach the provider, but for a variable that is set", () =>
    Effect.gen(function* () {
      const { env } = user()
      yield* Credentials.set("anthropic", key, env)
      const { provider } = yield* choose(env)
      assert.isTrue(Context.get(yield* Layer.build(provider), Provider.Provider) !== undefined)
      const named = { ...env, ANTHROPIC_AUTH_TOKEN: "other" }
      assert.strictEqual((yield* choose(named)).why, "ANTHROPIC_AUTH_TOKEN is set")
      assert.deepStrictEqual((yield* Credentials.list(named))[0], {
        vendor: "anthropic",
        key: { variable: "ANTHROPIC_AUTH_TOKEN" }
      })
      assert.strictEqual(yield* Credentials.joined(named), named)
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.effect(
    "are refused for an unknown vendor, with a space, and where the file is broken, without its text",
    () =>
      Effect.gen(function* () {
        const { env, file } = user()
        const unknown = yield* Effect.flip(Credentials.set("antropic", key, env))
        assert.strictEqual(unknown.message, 'There is no vendor "antropic". Did you mean anthropic?')
        const spaced = yield* Effect.flip(Credentials.set("anthropic", Redacted.make("a b"), env))
        assert.match(spaced.message, /^A key has/)
        yield* Credentials.set("anthropic", key, env)
        writeFileSync(file, '{ "anthropic": sk-ant-typed }')
        for (const { message } of [
          yield* Effect.flip(Credentials.list(env)),
          yield* Effect.flip(choose(env)),
          yield* Effect.flip(Credentials.set("openai", key, env))
        ])
          assert.strictEqual(message, `${file} is not as the program wrote it: repair or remove it.`)
      }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("keep one another, where several are entered at once", () =>
    Effect.gen(function* () {
      const { env } = user()
      const ids = ["anthropic", "openai", "google", "groq", "mistral"]
      yield* Effect.forEach(ids, (id) => Credentials.set(id, key, env), { concurrency: "unbounded" })
      const kept = (yield* Credentials.list(env)).flatMap(({ key, vendor }) =>
        key === "file" ? [vendor] : []
      )
      assert.sameMembers(kept, ids)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
