import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as OAuth from "../mcp/oauth.ts"
import { bundled, calls, type Ended, folder, run, says, server, start } from "./program.ts"

bundled()

/** A folder with a file of servers, and data of its own. */
const configured = (mcpServers: object) => {
  const cwd = folder({ "mcp.json": JSON.stringify({ mcpServers }) })
  const home = join(cwd, "data")
  const env = { EFFECT_AGENT_HOME: home }
  return { cwd, env, flags: ["--mcp-config", join(cwd, "mcp.json")], tokens: join(home, "mcp-tokens.json") }
}

type Place = ReturnType<typeof configured>

const mcp = ({ cwd, env, flags }: Place, ...args: ReadonlyArray<string>) =>
  run(["mcp", ...args, ...flags], { cwd, env })

/** Signs in, with a browser that allows everything. */
const signIn = (
  { cwd, env, flags }: Place,
  visit: (address: string) => unknown = (address) => fetch(address),
  options: { readonly stdin?: string } = {}
): Effect.Effect<Ended> =>
  Effect.promise(async () => {
    const { child, ended } = start(["mcp", "login", "web", "--no-browser", ...flags], {
      cwd,
      env,
      ...options
    })
    let written = ""
    let isSeen = false
    child.stdout?.on("data", (text: string) => {
      written += text
      const [, address] = /Open this address:\n(\S+)\n/.exec(written) ?? []
      if (address === undefined || isSeen) return
      isSeen = true
      visit(address)
    })
    return ended
  })

describe("mcp login, logout and list", () => {
  it.live(
    "sign in to a server, whose tools a run then has, and sign out again, and show no token (P-87)",
    () =>
      Effect.gen(function* () {
        const oauth = yield* OAuth.serve
        const place = configured({ web: { url: oauth.url }, off: { command: "none", disabled: true } })
        const before = yield* mcp(place, "list")
        assert.deepStrictEqual(before, {
          code: 0,
          stdout: "web · needs sign-in: effect-agent mcp login web\noff · off\n",
          stderr: ""
        })
        const signedIn = yield* signIn(place)
        assert.strictEqual(signedIn.code, 0, signedIn.stderr)
        assert.match(
          signedIn.stdout,
          /^Open this address:\nhttp:\/\/127\.0\.0\.1:\d+\/authorize\?\S+\nSigned in to web\.\n$/
        )
        assert.strictEqual(statSync(place.tokens).mode & 0o777, 0o600)
        const after = yield* mcp(place, "list", "--json")
        assert.deepStrictEqual(JSON.parse(after.stdout), {
          items: [
            { name: "web", state: "connected", tools: 1 },
            { name: "off", state: "off" }
          ]
        })
        const asked = yield* ask(place)
        assert.include(asked.stdout, "12:00")
        const { cwd, env } = place
        mkdirSync(join(cwd, "config/effect-agent"), { recursive: true })
        const config = JSON.stringify({ mcpConfig: join(cwd, "mcp.json") })
        writeFileSync(join(cwd, "config/effect-agent/config.json"), config)
        const byConfig = yield* run(["mcp", "list"], {
          cwd,
          env: { ...env, XDG_CONFIG_HOME: join(cwd, "config") }
        })
        assert.strictEqual(byConfig.stdout, "web · connected · 1 tool\noff · off\n")
        const kept = readFileSync(place.tokens, "utf8")
        const out = yield* mcp(place, "logout", "web")
        assert.deepStrictEqual([out.code, out.stdout], [0, "Signed out of web.\n"])
        const again = yield* mcp(place, "logout", "web")
        assert.deepStrictEqual([again.code, again.stdout], [0, "There was no sign-in to web.\n"])
        assert.include((yield* mcp(place, "list")).stdout, "needs sign-in")
        const output = JSON.stringify([before, signedIn, after, asked, out, again])
        assert.isAtLeast(oauth.secrets.length, 3)
        for (const secret of oauth.secrets) assert.notInclude(output, secret)
        assert.isTrue(oauth.secrets.some((secret) => kept.includes(secret)))
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "take the address that the person was sent to, pasted after other lines",
    () =>
      Effect.gen(function* () {
        const oauth = yield* OAuth.serve
        const place = configured({ web: { url: oauth.url } })
        const { cwd, env, flags } = place
        const ended = yield* Effect.promise(async () => {
          const { child, ended } = start(["mcp", "login", "web", "--no-browser", ...flags], {
            cwd,
            env,
            stdin: "open"
          })
          child.stdout?.once("data", async (text: string) => {
            const [, address = ""] = /\n(\S+)\n/.exec(text) ?? []
            const { headers } = await fetch(address, { redirect: "manual" })
            child.stdin?.write(`\nhttps://example.com/\n${headers.get("location")}\n`)
          })
          return ended
        })
        assert.deepStrictEqual(
          [ended.code, ended.stdout.endsWith("Signed in to web.\n")],
          [0, true],
          ended.stderr
        )
        assert.include(ended.stderr, "paste the address")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "open the person's browser, which has no terminal",
    () =>
      Effect.gen(function* () {
        const oauth = yield* OAuth.serve
        const place = configured({ web: { url: oauth.url } })
        const bin = join(place.cwd, "bin")
        mkdirSync(bin)
        const visit = `fetch(process.argv[2]).then(() => {})`
        writeFileSync(join(bin, "visit.mjs"), visit)
        writeFileSync(
          join(bin, "xdg-open"),
          `#!/bin/sh\nexec "${process.execPath}" "${join(bin, "visit.mjs")}" "$1"\n`
        )
        chmodSync(join(bin, "xdg-open"), 0o755)
        const env = { ...place.env, PATH: `${bin}:${process.env["PATH"]}` }
        const { code, stderr, stdout } = yield* mcp({ ...place, env }, "login", "web")
        assert.deepStrictEqual([code, stdout.endsWith("Signed in to web.\n")], [0, true], stderr)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "keep the tokens in the system's keyring where it works, and in the file where it does not",
    () =>
      Effect.gen(function* () {
        const oauth = yield* OAuth.serve
        const place = configured({ web: { url: oauth.url } })
        const bin = join(place.cwd, "bin")
        mkdirSync(bin)
        const tool = (script: string) => {
          writeFileSync(join(bin, "secret-tool"), `#!/bin/sh\n${script}\n`)
          chmodSync(join(bin, "secret-tool"), 0o755)
        }
        const secret = join(place.cwd, "keyring")
        const env = { ...place.env, PATH: `${bin}:${process.env["PATH"]}` }
        const own = { ...place, env }
        tool(
          `case "$1" in store) cat > "${secret}";; lookup) cat "${secret}" 2>/dev/null || exit 1;; clear) rm -f "${secret}";; esac`
        )
        assert.strictEqual((yield* signIn(own)).code, 0)
        assert.include(readFileSync(secret, "utf8"), "access-")
        assert.deepStrictEqual(JSON.parse(readFileSync(place.tokens, "utf8")), {
          [`web ${oauth.url}`]: "keyring"
        })
        assert.include((yield* mcp(own, "list")).stdout, "web · connected · 1 tool\n")
        assert.include((yield* mcp(own, "logout", "web")).stdout, "Signed out of web.")
        assert.isFalse(existsSync(secret))
        tool("exit 1")
        assert.strictEqual((yield* signIn(own)).code, 0)
        assert.include(readFileSync(place.tokens, "utf8"), "access-")
      }).pipe(Effect.scoped),
    120_000
  )
})

describe("a run with a server that needs a sign-in", () => {
  it.live(
    "goes on without it, with one line, and gets new tokens for expired ones without a word",
    () =>
      Effect.gen(function* () {
        const oauth = yield* OAuth.serve
        const place = configured({ web: { url: oauth.url } })
        const without = yield* ask(place)
        assert.strictEqual(without.code, 0)
        const lines = without.stderr.split("\n").filter((line) => line.includes("web"))
        assert.deepStrictEqual(lines, ["web needs sign-in: effect-agent mcp login web"])
        assert.strictEqual((yield* signIn(place)).code, 0)
        oauth.valid.clear()
        const [first, second] = yield* Effect.all([ask(place), ask(place)], { concurrency: 2 })
        for (const { code, stderr, stdout } of [first, second]) {
          assert.strictEqual(code, 0)
          assert.include(stdout, "12:00", stderr)
          assert.notMatch(stderr, /token|mcp-sdk|sign-in/i)
        }
        assert.deepStrictEqual(oauth.grants, ["authorization_code", "refresh_token"])
        // The server takes neither token any more.
        oauth.valid.clear()
        oauth.faults = { token: { status: 400, body: '{"error":"invalid_grant"}' } }
        const over = yield* ask(place)
        assert.deepStrictEqual(
          over.stderr.split("\n").filter((line) => line.includes("web")),
          ["web needs sign-in: effect-agent mcp login web"]
        )
        assert.notMatch(over.stderr, /mcp-sdk/)
        const required = configured({ web: { url: oauth.url, required: true } })
        assert.strictEqual((yield* ask(required)).code, 2)
      }).pipe(Effect.scoped),
    120_000
  )
})

/** Runs a prompt whose model calls the tool of the server, and says its result. */
const ask = ({ cwd, env, flags }: Place) =>
  Effect.gen(function* () {
    const url = yield* server((_, body, response) => {
      const { messages, tools = [] } = JSON.parse(body)
      const result = messages.at(-1)
      const name = "mcp__web__now"
      if (result.role === "tool") return says(response, [JSON.stringify(result.content)])
      if (tools.some((tool: { function?: { name: string } }) => tool.function?.name === name))
        return calls(response, name, {})
      return says(response, ["no such tool"])
    })
    const model = ["--model", "openai-chat/m", "--base-url", `${url}/v1`, "--no-session", "--yes"]
    return yield* run([...model, ...flags, "go"], { cwd, env: { ...env, OPENAI_API_KEY: "sk-test" } })
  }).pipe(Effect.scoped)
