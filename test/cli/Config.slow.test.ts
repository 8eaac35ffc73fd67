import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Program from "./program.ts"

Program.bundled()

/** A project with a configuration, and a user with one. */
const setUp = (files: { readonly project?: object; readonly user?: object }) => {
  const cwd = Program.folder(
    files.project === undefined ? {} : { ".effect-agent/config.json": JSON.stringify(files.project) }
  )
  const home = Program.folder(
    files.user === undefined ? {} : { "effect-agent/config.json": JSON.stringify(files.user) }
  )
  const run = (args: ReadonlyArray<string>, env: Readonly<Record<string, string>> = {}) =>
    Program.run(args, { cwd, env: { XDG_CONFIG_HOME: home, ...env } })
  return { cwd, user: join(home, "effect-agent/config.json"), run }
}

describe.concurrent("configuration", { timeout: 90_000 }, () => {
  it.effect("counts in the order flag, variable, project, user", () =>
    Effect.gen(function* () {
      const { run } = setUp({
        project: { maxTurns: 3, timeout: "3m", effort: "low", $schema: "x" },
        user: { maxTurns: 4, timeout: "4m", effort: "high", temperature: 0.4, tools: ["read", "list"] }
      })
      const args = ["config", "--json", "--max-turns", "1"]
      const { code, stdout } = yield* run(args, { EFFECT_AGENT_MAX_TURNS: "2", EFFECT_AGENT_TIMEOUT: "2m" })
      assert.strictEqual(code, 0)
      const { settings } = JSON.parse(stdout)
      assert.deepStrictEqual(settings.maxTurns, { value: 1, source: "flag", from: "--max-turns" })
      assert.deepStrictEqual(settings.timeout, {
        value: "2m",
        source: "variable",
        from: "EFFECT_AGENT_TIMEOUT"
      })
      assert.deepInclude(settings.effort, { value: "low", source: "project" })
      assert.match(settings.effort.from, /\.effect-agent\/config\.json$/)
      assert.deepInclude(settings.temperature, { value: 0.4, source: "user" })
      assert.deepInclude(settings.tools, { value: ["read", "list"], source: "user" })
      assert.deepStrictEqual(settings.sandbox, { value: "auto", source: "default" })
      assert.deepInclude(settings.model, { value: "local/rules", source: "default" })
      const { stdout: text } = yield* run(["config"])
      assert.match(text, /^maxTurns = 3 {2}\(.*config\.json\)$/m)
    })
  )

  it.effect("lists the settings of servers and workers", () =>
    Effect.gen(function* () {
      const { run } = setUp({
        user: { durable: true, lease: "20s", unknown: "ask", maxConnections: 20, allowHeader: "traceparent" },
        // A project must not open the machine, and not remove the records of a server.
        project: { retain: "30d", host: "0.0.0.0", tokenFile: "tokens", allowOrigin: "https://evil.example" }
      })
      const { code, stderr, stdout } = yield* run(
        ["config", "--json", "--cluster-host", "10.0.0.1", "--allow-host", "a", "--allow-host", "b"],
        {
          EFFECT_AGENT_LEASE: "30s",
          EFFECT_AGENT_HEALTH_PORT: "4113",
          EFFECT_AGENT_CLUSTER_HOST: "10.0.0.2",
          EFFECT_AGENT_ALLOW_ORIGIN: "https://a.example, https://b.example",
          EFFECT_AGENT_TOKEN: "secret"
        }
      )
      assert.strictEqual(code, 0)
      const { settings } = JSON.parse(stdout)
      assert.deepInclude(settings.durable, { value: true, source: "user" })
      assert.deepStrictEqual(settings.lease, {
        value: "30s",
        source: "variable",
        from: "EFFECT_AGENT_LEASE"
      })
      assert.deepStrictEqual(settings.retain, { value: null, source: "default" })
      assert.deepStrictEqual(settings.host, { value: "127.0.0.1", source: "default" })
      assert.deepStrictEqual(settings.tokenFile, { value: null, source: "default" })
      assert.deepInclude(settings.maxConnections, { value: 20, source: "user" })
      assert.deepInclude(settings.allowHeader, { value: ["traceparent"], source: "user" })
      assert.deepInclude(settings.unknown, { value: "ask", source: "user" })
      assert.match(
        stderr,
        /config\.json does not count for host, allowOrigin, tokenFile, retain until you trust it/
      )
      assert.deepStrictEqual(settings.clusterHost, {
        value: "10.0.0.1",
        source: "flag",
        from: "--cluster-host"
      })
      assert.deepStrictEqual(settings.healthPort, {
        value: 4113,
        source: "variable",
        from: "EFFECT_AGENT_HEALTH_PORT"
      })
      assert.deepStrictEqual(settings.clusterPort, { value: null, source: "default" })
      assert.deepStrictEqual(settings.allowHost, { value: ["a", "b"], source: "flag", from: "--allow-host" })
      assert.deepInclude(settings.allowOrigin, { value: ["https://a.example", "https://b.example"] })
      assert.deepStrictEqual(settings.grace, { value: "10s", source: "default" })
      assert.notInclude(stdout, "secret")
    })
  )

  it.effect("bounds a run", () =>
    Effect.gen(function* () {
      const { run } = setUp({ project: { maxTurns: 1 } })
      const { code, stderr } = yield* run(["list"])
      assert.strictEqual(code, 3)
      assert.match(stderr, /Stopped after 1 turn\./)
    })
  )

  it.effect.each([
    ["an unknown setting", { maxTurn: 1 }, /"maxTurn" is no setting\. Did you mean "maxTurns"\?/],
    ["a value of another type", { maxTurns: "many" }, /config\.json: .*maxTurns/],
    [
      "a value that makes no sense",
      { maxTurns: 0 },
      /config\.json: maxTurns: "0"\. Expected: a number above 0/
    ],
    ["trust in the file of the project", { trusted: {} }, /"trusted" belongs into/]
  ] as const)("is refused for %s", ([, project, said]) =>
    Effect.gen(function* () {
      const { run } = setUp({ project })
      const { code, stderr, stdout } = yield* run(["list"])
      assert.deepStrictEqual([code, stdout], [2, ""])
      assert.match(stderr, said)
    })
  )

  it.effect("of a project is that of the next folder above, within the repository", () =>
    Effect.gen(function* () {
      const { cwd, run } = setUp({ project: { maxTurns: 1 } })
      mkdirSync(join(cwd, "a/b"), { recursive: true })
      assert.strictEqual((yield* run(["--cwd", "a/b", "list"])).code, 0)
      mkdirSync(join(cwd, ".git"))
      assert.strictEqual((yield* run(["--cwd", "a/b", "list"])).code, 3)
    })
  )

  it.effect("of a project widens nothing before the user trusts it, as it is", () =>
    Effect.gen(function* () {
      const project = { allow: ["shell(touch made)"], sandbox: "off", maxTurns: 5 }
      const { cwd, run, user } = setUp({ project, user: { effort: "low" } })
      const touch = "run touch made"
      const first = yield* run([touch])
      assert.strictEqual(first.code, 5)
      assert.match(first.stderr, /config\.json does not count for allow, sandbox until you trust it/)
      assert.notMatch(first.stderr, /--sandbox off/)
      assert.isFalse(existsSync(join(cwd, "made")))
      assert.strictEqual((yield* run(["config", "--trust"])).code, 0)
      assert.strictEqual(statSync(user).mode & 0o777, 0o600)
      assert.strictEqual(JSON.parse(readFileSync(user, "utf8")).effort, "low")
      const second = yield* run([touch])
      assert.match(second.stderr, /--sandbox off/)
      assert.isTrue(existsSync(join(cwd, "made")))
      const changed = { ...project, allow: ["shell"] }
      writeFileSync(join(cwd, ".effect-agent/config.json"), JSON.stringify(changed))
      assert.strictEqual((yield* run(["run touch other"])).code, 5)
      yield* run(["config", "--trust"])
      yield* run(["config", "--untrust"])
      assert.strictEqual((yield* run(["run touch other"])).code, 5)
    })
  )

  const user = {
    tools: "read,list",
    maxCost: 1,
    maxTokens: 1000,
    maxTokensTotal: 1000,
    timeout: "1h",
    approve: "deny"
  }

  it.effect("of a project names the model on stderr", () =>
    Effect.gen(function* () {
      const { run } = setUp({ project: { model: "local/rules", effort: "max" } })
      const { stderr } = yield* run(["list ."])
      assert.match(stderr, /config\.json of this project chooses model local\/rules and effort max\./)
    })
  )

  it.effect.each([
    [{ yes: true }, "yes"],
    [{ approve: "allow" }, "approve"],
    [{ network: true }, "network"],
    [{ writable: "/tmp" }, "writable"],
    [{ baseUrl: "http://127.0.0.1:1" }, "baseUrl"],
    [{ tools: ["shell"] }, "tools"],
    [{ maxCost: 10 }, "maxCost"],
    [{ maxTurns: 51 }, "maxTurns"],
    [{ maxTokens: 2000 }, "maxTokens"],
    [{ maxTokensTotal: 2000 }, "maxTokensTotal"],
    [{ timeout: "2h" }, "timeout"]
  ] as const)("of a project does not widen by %j", ([project, key]) =>
    Effect.gen(function* () {
      const { run } = setUp({ project, user })
      const { stderr, stdout } = yield* run(["config", "--json"])
      assert.notStrictEqual(JSON.parse(stdout).settings[key].source, "project")
      assert.include(stderr, `does not count for ${key} until`)
    })
  )

  it.effect("of a project narrows without trust", () =>
    Effect.gen(function* () {
      const project = { tools: ["read"], maxCost: 0.5, approve: "deny", sandbox: "require", deny: "write" }
      const { run } = setUp({ project, user: { tools: ["read", "list"], maxCost: 1, deny: ["shell"] } })
      const { stderr, stdout } = yield* run(["config", "--json"])
      assert.strictEqual(stderr, "")
      const { settings } = JSON.parse(stdout)
      for (const key of Object.keys(project)) assert.strictEqual(settings[key].source, "project", key)
      assert.deepStrictEqual(settings.deny.value, ["write", "shell"])
    })
  )
})
