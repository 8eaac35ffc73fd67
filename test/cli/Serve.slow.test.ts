import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { framesOf, send } from "../server/http.ts"
import { bundled, run, server as modelServer, start, type Options, type Running } from "./program.ts"

/** A run whose command outlives the test. */
const prompt = "run sleep 30"

const folder = () => mkdtempSync(join(tmpdir(), "effect-agent-serve-"))
const secret = "a-token-of-the-test"

interface Server extends Running {
  readonly port: number
  readonly first: { readonly type: string; readonly url: string; readonly token?: string }
}

const serve = async (
  sessions: string,
  args: ReadonlyArray<string> = [],
  options: Options = {},
  model = "local/rules"
): Promise<Server> => {
  const flags = [
    "--port",
    "0",
    "--json",
    sessions.startsWith("sqlite:") ? "--store" : "--session-dir",
    sessions,
    "-m",
    model,
    ...(args.includes("--approve") ? [] : ["--yes"]),
    "--sandbox",
    "off"
  ]
  const running = start(["serve", ...flags, ...args], {
    env: { EFFECT_AGENT_TOKEN: secret },
    ...options
  })
  const line = await new Promise<string>((resolve, reject) => {
    let text = ""
    running.child.stdout?.on("data", (chunk: string) => {
      text += chunk
      if (text.includes("\n")) resolve(text.split("\n")[0] ?? "")
    })
    running.child.on("close", () => void running.ended.then(({ stderr }) => reject(new Error(stderr))))
  })
  const first = JSON.parse(line)
  return { ...running, first, port: Number(new URL(first.url).port) }
}

const ask = (port: number, path: string, body?: object) =>
  Effect.runPromise(
    send(port, {
      path,
      headers: { authorization: `Bearer ${secret}` },
      ...(body === undefined ? {} : { body })
    })
  )

/** Reads frames until one has the tag, and leaves. */
const until = async (port: number, runId: string, tag: string) => {
  const response = await fetch(`http://127.0.0.1:${port}/runs/${runId}/events`, {
    headers: { authorization: `Bearer ${secret}` }
  })
  let text = ""
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const found = framesOf(text).findIndex(({ event }) => event === tag)
    if (found === -1) continue
    return framesOf(text).slice(0, found + 1)
  }
  throw new Error(`no ${tag}`)
}

describe("effect-agent serve", () => {
  bundled()

  it("writes where it listens, runs a prompt, keeps it, and ends with 0", async () => {
    const sessions = folder()
    const server = await serve(sessions)
    assert.strictEqual(server.first.type, "listening")
    assert.isUndefined(server.first.token)
    assert.strictEqual((await ask(server.port, "/sessions", { sessionId: "s" })).status, 201)
    const { json } = await ask(server.port, "/sessions/s/runs", { prompt: "list ." })
    const events = await ask(server.port, `/runs/${json.runId}/events`)
    assert.strictEqual(framesOf(events.text).at(-1)?.event, "RunEnd")
    server.child.kill("SIGTERM")
    const { code, stderr } = await server.ended
    assert.strictEqual(code, 0)
    // Each request has a line, with its run.
    assert.match(stderr, new RegExp(`method=POST path=/sessions/s/runs status=201 .*runId=${json.runId}`))
    assert.match(stderr, new RegExp(`method=GET path=/runs/${json.runId}/events status=200`))
    const logs = join(sessions, "runs", "s")
    assert.deepStrictEqual(readdirSync(logs), [`${json.runId}.jsonl`])
    assert.strictEqual(statSync(join(logs, `${json.runId}.jsonl`)).mode & 0o777, 0o600)
  })

  it("runs command hooks, and keeps versions of the files that calls change (P-70, P-82)", async () => {
    const sessions = folder()
    const cwd = folder()
    const config = folder()
    const command = "cat > input; grep -q made.txt input || exit 0; echo not here >&2; exit 2"
    mkdirSync(join(config, "effect-agent"))
    writeFileSync(
      join(config, "effect-agent/config.json"),
      JSON.stringify({ hooks: { PreToolUse: [{ hooks: [{ type: "command", command }] }] } })
    )
    writeFileSync(join(cwd, "a.txt"), "one")
    const options = { cwd, env: { EFFECT_AGENT_TOKEN: secret, XDG_CONFIG_HOME: config } }
    const server = await serve(sessions, [], options)
    await ask(server.port, "/sessions", { sessionId: "s" })
    const play = async (prompt: string) => {
      const { json } = await ask(server.port, "/sessions/s/runs", { prompt })
      return (await ask(server.port, `/runs/${json.runId}/events`)).text
    }
    assert.include(await play("run touch made.txt"), "refused by hook: not here")
    await play("run echo two > a.txt")
    assert.deepStrictEqual(
      readdirSync(cwd).map((name) => [name, name === "a.txt" ? readFileSync(join(cwd, name), "utf8") : ""]),
      [
        ["a.txt", "two\n"],
        ["input", ""]
      ]
    )
    const input = JSON.parse(readFileSync(join(cwd, "input"), "utf8"))
    assert.deepStrictEqual([input.session_id, input.cwd, input.tool_name], ["s", cwd, "shell"])
    server.child.kill("SIGTERM")
    assert.strictEqual((await server.ended).code, 0)
    const args = ["sessions", "rewind", "s", "--files", "--session-dir", sessions]
    assert.include((await Effect.runPromise(run(args, options))).stdout, "Restored 1 files, removed 0.")
    assert.strictEqual(readFileSync(join(cwd, "a.txt"), "utf8"), "one")
  }, 30_000)

  it("blames no setting for the model of a request", async () => {
    const server = await serve(folder())
    const { json, status } = await ask(server.port, "/sessions", { model: "nope/x" })
    assert.strictEqual(status, 400)
    assert.match(json.detail, /^model: models are named provider\/id, not "nope\/x"/)
    server.child.kill("SIGTERM")
    await server.ended
  })

  it("lets sessions name the models of its provider, or those of --session-model", async () => {
    const env = { EFFECT_AGENT_TOKEN: secret, ANTHROPIC_API_KEY: "sk-ant-x", GROQ_API_KEY: "gsk-x" }
    for (const [flags, models, refused] of [
      [[], ["local/rules"], "anthropic/claude-x"],
      [
        ["--session-model", "groq/a", "--session-model", "anthropic/*"],
        ["anthropic/claude-x", "groq/a"],
        "groq/b"
      ]
    ] as const) {
      const server = await serve(folder(), flags, { env })
      for (const model of models)
        assert.strictEqual((await ask(server.port, "/sessions", { model })).status, 201, model)
      const { json, status } = await ask(server.port, "/sessions", { model: refused })
      assert.strictEqual(status, 400)
      assert.include(json.detail, `does not let sessions name ${refused}`)
      server.child.kill("SIGTERM")
      await server.ended
    }
  }, 30_000)

  it("makes a token, refuses others, and takes a file with one", async () => {
    const made = await serve(folder(), [], { env: {} })
    assert.isAtLeast(made.first.token?.length ?? 0, 20)
    assert.strictEqual((await ask(made.port, "/sessions")).status, 401)
    made.child.kill("SIGTERM")
    assert.strictEqual((await made.ended).code, 0)
    const file = join(folder(), "token")
    writeFileSync(file, "\n")
    const { code, stderr } = await Effect.runPromise(run(["serve", "--port", "0", "--token-file", file]))
    assert.strictEqual(code, 2, stderr)
    assert.include(stderr, "has no token")
    const port = await Effect.runPromise(run(["serve", "--port", "99999"]))
    assert.strictEqual(port.code, 2)
  })

  it("listens where its own variables or the user's file say, and takes the tokens of a changed file", async () => {
    const home = folder()
    const file = join(home, "tokens")
    writeFileSync(file, secret)
    mkdirSync(join(home, "effect-agent"))
    writeFileSync(
      join(home, "effect-agent/config.json"),
      JSON.stringify({ tokenFile: file, maxConnections: 50, allowHeader: ["traceparent"] })
    )
    const env = {
      XDG_CONFIG_HOME: home,
      EFFECT_AGENT_CLUSTER_HOST: "10.0.0.9",
      EFFECT_AGENT_HOST: "localhost"
    }
    const server = await serve(folder(), ["--allow-origin", "https://app.example"], { env, stdin: "open" })
    const statusOf = async (token: string) => {
      const answer = send(server.port, { path: "/sessions", headers: { authorization: `Bearer ${token}` } })
      return (await Effect.runPromise(answer)).status
    }
    assert.strictEqual(await statusOf(secret), 200)
    const preflight = await Effect.runPromise(
      send(server.port, {
        method: "OPTIONS",
        path: "/sessions",
        headers: { origin: "https://app.example", authorization: undefined }
      })
    )
    assert.match(String(preflight.headers["access-control-allow-headers"]), /last-event-id, traceparent$/)
    const next = "another-token-of-the-test"
    writeFileSync(file, next)
    server.child.kill("SIGHUP")
    await server.says(/again, and takes 1 tokens/)
    assert.deepStrictEqual([await statusOf(next), await statusOf(secret)], [200, 401])
    server.child.kill("SIGTERM")
    assert.strictEqual((await server.ended).code, 0)
  })

  it("ends at SIGTERM although connections are open: idle ones at once, others after the grace", async () => {
    const half = "POST /sessions HTTP/1.1\r\nHost: localhost\r\n"
    const body = `${half}Authorization: Bearer ${secret}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{`
    for (const [texts, most] of [
      [["", half], 2_000],
      [[body], 4_000]
    ] as const) {
      const server = await serve(folder(), ["--grace", "500ms"])
      for (const text of texts) {
        const socket = connect(server.port, "127.0.0.1").on("error", () => {})
        await once(socket, "connect")
        socket.write(text)
      }
      // A request that comes later has its answer when the texts have come.
      await ask(server.port, "/health")
      const begun = performance.now()
      server.child.kill("SIGTERM")
      assert.strictEqual((await server.ended).code, 0)
      assert.isBelow(performance.now() - begun, most)
    }
  }, 30_000)

  it("serves with the settings of durable runs that a variable or a file has, without --durable", async () => {
    const server = await serve(folder(), [], {
      env: { EFFECT_AGENT_RETAIN: "30d", EFFECT_AGENT_UNKNOWN: "ask" }
    })
    server.child.kill("SIGTERM")
    assert.strictEqual((await server.ended).code, 0)
  })

  it("limits the requests of a token, and refuses flags that mean nothing to it", async () => {
    const { child, ended, port } = await serve(folder(), ["--rate", "2/1h"])
    const statuses = []
    for (let asked = 0; asked < 3; asked++) statuses.push((await ask(port, "/sessions")).status)
    assert.deepStrictEqual(statuses, [200, 200, 429])
    child.kill("SIGTERM")
    assert.strictEqual((await ended).code, 0)
    for (const flags of [
      ["--rate", "0"],
      ["--rate", "5/x"],
      ["--lease", "20s"],
      ["--cluster-port", "4200"],
      ["--cluster-host", "10.0.0.1"],
      ["--port", "99999"],
      ["--allow-header", "a b"],
      ["--allow-origin", "chat.example"],
      ["--allow-host", "https://agent.example"],
      ["--proxy-model", "no-such/model"],
      ["--print"],
      ["--continue"],
      ["--output", "a"]
    ]) {
      const { code, stderr } = await Effect.runPromise(run(["serve", "--port", "0", ...flags]))
      assert.strictEqual(code, 2, stderr)
      assert.include(stderr, flags[0] ?? "")
    }
  }, 60_000)

  it("has runs that effect-agent runs lists, shows, watches, cancels and removes", async () => {
    const server = await serve(folder())
    const env = { EFFECT_AGENT_TOKEN: secret, EFFECT_AGENT_URL: server.first.url }
    const runs = (...args: ReadonlyArray<string>) => Effect.runPromise(run(["runs", ...args], { env }))
    await ask(server.port, "/sessions", { sessionId: "s" })
    const { json } = await ask(server.port, "/sessions/s/runs", { prompt })
    await until(server.port, json.runId, "ToolInvoked")
    assert.match((await runs("list")).stdout, new RegExp(`^${json.runId} .* running +s\n$`))
    assert.match((await runs("show", json.runId.replace(/[^_]+$/, ""))).stdout, /^status: running$/m)
    const early = await runs("rm", json.runId)
    assert.deepStrictEqual([early.code, early.stdout], [1, ""])
    assert.match(early.stderr, /has not ended/)
    const watched = runs("watch", json.runId, "--json")
    assert.strictEqual((await runs("cancel", json.runId, "--reason", "enough")).code, 0)
    const { code, stdout } = await watched
    assert.strictEqual(code, 1)
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    assert.deepInclude(lines.at(-1)?.event, { _tag: "RunEnd", status: "cancelled" })
    assert.deepStrictEqual(lines[0]?.position, 1)
    const { runId } = (await ask(server.port, "/sessions/s/runs", { prompt: "hello" })).json
    await until(server.port, runId, "RunEnd")
    const answer = (await runs("watch", runId)).stdout
    assert.match(answer, /\w/)
    assert.isTrue((await runs("show", runId)).stdout.endsWith(`\n\n${answer}`))
    const { items } = JSON.parse((await runs("list", "s", "--json")).stdout)
    assert.deepInclude(items[0], { runId: json.runId, status: "cancelled" })
    const { sessionId } = (await ask(server.port, "/sessions", {})).json
    const { runId: other } = (await ask(server.port, `/sessions/${sessionId}/runs`, { prompt: "hello" })).json
    const begun = await runs("list", sessionId.slice(0, 8), "--json")
    assert.deepInclude(JSON.parse(begun.stdout).items[0], { runId: other })
    assert.include((await runs("list", "nowhere")).stderr, 'There is no session "nowhere"')
    assert.strictEqual((await runs("rm", json.runId)).code, 0)
    const gone = await runs("show", json.runId)
    assert.deepStrictEqual([gone.code, gone.stdout], [2, ""])
    const wrong = await Effect.runPromise(
      run(["runs", "list"], { env: { ...env, EFFECT_AGENT_TOKEN: "no" } })
    )
    assert.deepStrictEqual([wrong.code, wrong.stdout], [1, ""])
    server.child.kill("SIGTERM")
    assert.strictEqual((await server.ended).code, 0)
  }, 60_000)

  it("lists the runs that wait for a person, and runs watch says how to answer them", async () => {
    const server = await serve(folder(), ["--approve", "ask"])
    const env = { EFFECT_AGENT_TOKEN: secret, EFFECT_AGENT_URL: server.first.url }
    const runs = (...args: ReadonlyArray<string>) => Effect.runPromise(run(["runs", ...args], { env }))
    await ask(server.port, "/sessions", { sessionId: "s" })
    await ask(server.port, "/sessions", { sessionId: "other" })
    const { runId } = (await ask(server.port, "/sessions/s/runs", { prompt: "run ls" })).json
    const frames = await until(server.port, runId, "ApprovalRequested")
    const { approvalId, argumentsHash } = frames?.at(-1)?.data ?? {}
    for (const [session, found] of [
      [[], [runId]],
      [["s"], [runId]],
      [["other"], []]
    ] as const) {
      const { stdout } = await runs("list", ...session, "--status", "waiting", "--json")
      assert.deepStrictEqual(
        JSON.parse(stdout).items.map((item: { readonly runId: string }) => item.runId),
        found
      )
    }
    const watched = runs("watch", runId)
    await ask(server.port, `/runs/${runId}/approvals/${approvalId}`, { decision: "reject", argumentsHash })
    assert.include((await watched).stderr, `Waits: POST /runs/${runId}/approvals/${approvalId}`)
    server.child.kill("SIGTERM")
    assert.strictEqual((await server.ended).code, 0)
  }, 60_000)

  it("refuses at its start an MCP server whose variable the environment does not have", async () => {
    const cwd = folder()
    const file = join(cwd, "mcp.json")
    writeFileSync(
      file,
      '{"mcpServers":{"one":{"url":"http://127.0.0.1:1/","headers":{"x":"${NO_SUCH_KEY}"}}}}'
    )
    const { code, stderr } = await Effect.runPromise(
      run(["serve", "--port", "0", "-m", "local/rules", "--mcp-config", file], { cwd })
    )
    assert.strictEqual(code, 2, stderr)
    assert.include(stderr, "NO_SUCH_KEY")
  })

  it("drains at SIGTERM: the stream of each of 50 watchers closes without RunEnd", async () => {
    const server = await serve(folder(), ["--grace", "1s"])
    await ask(server.port, "/sessions", { sessionId: "s" })
    const { json } = await ask(server.port, "/sessions/s/runs", { prompt })
    await until(server.port, json.runId, "ToolInvoked")
    const watchers = Array.from({ length: 50 }, () => ask(server.port, `/runs/${json.runId}/events`))
    await until(server.port, json.runId, "ToolInvoked")
    const begun = Date.now()
    server.child.kill("SIGTERM")
    const answers = await Promise.all(watchers)
    for (const { text } of answers) {
      assert.notStrictEqual(framesOf(text).at(-1)?.event, "RunEnd")
    }
    assert.strictEqual((await server.ended).code, 0)
    assert.isBelow(Date.now() - begun, 10_000)
  }, 30_000)

  it.live(
    "drains at SIGTERM: leaves 50 runs in mid-answer, and closes the streams of their watchers",
    () =>
      Effect.gen(function* () {
        const url = yield* modelServer((_, __, response) => {
          response.writeHead(200, { "content-type": "text/event-stream" })
          const piece = `data: {"choices":[{"index":0,"delta":{"content":"more "}}]}\n\n`
          const timer = setInterval(() => response.write(piece), 20)
          response.on("close", () => clearInterval(timer))
        })
        yield* Effect.promise(async () => {
          const env = { EFFECT_AGENT_TOKEN: secret, OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: `${url}/v1` }
          const server = await serve(folder(), ["--grace", "1s"], { env }, "openai-chat/gpt-4.1")
          const watchers = await Promise.all(
            Array.from({ length: 50 }, async (_, index) => {
              await ask(server.port, "/sessions", { sessionId: `s${index}` })
              const { json } = await ask(server.port, `/sessions/s${index}/runs`, { prompt: "Speak." })
              const watched = ask(server.port, `/runs/${json.runId}/events`)
              await until(server.port, json.runId, "MessageDelta")
              return { watched }
            })
          )
          const begun = Date.now()
          server.child.kill("SIGTERM")
          for (const { watched } of watchers) {
            const frames = framesOf((await watched).text)
            const tags = frames.map(({ event }) => event)
            assert.include(tags, "MessageDelta")
            assert.notInclude(tags, "RunEnd")
          }
          const { code, stderr } = await server.ended
          assert.strictEqual(code, 0, stderr)
          assert.isBelow(Date.now() - begun, 10_000)
        })
      }).pipe(Effect.scoped),
    60_000
  )

  it.each([
    ["files", folder],
    ["SQLite", () => `sqlite:${join(folder(), "agent.db")}`]
  ])("continues cursors and the run after kill -9, in %s", async (_, place) => {
    const sessions = place()
    const first = await serve(sessions)
    await ask(first.port, "/sessions", { sessionId: "s" })
    const { json } = await ask(first.port, "/sessions/s/runs", { prompt })
    const seen = await until(first.port, json.runId, "ToolInvoked")
    first.child.kill("SIGKILL")
    await first.ended
    const second = await serve(sessions)
    const last = seen.at(-1)?.id ?? 0
    const { text } = await ask(second.port, `/runs/${json.runId}/events?after=${last}`)
    const rest = framesOf(text)
    assert.deepInclude(rest[0]?.data, { _tag: "ToolExecutionEnd", outcome: "unknown" })
    assert.isAbove(rest[0]?.id ?? 0, last)
    assert.deepInclude(rest.at(-1)?.data, { _tag: "RunEnd", status: "completed" })
    const all = framesOf((await ask(second.port, `/runs/${json.runId}/events`)).text)
    const stored = seen.filter(({ event }) => event !== "MessageDelta")
    assert.deepStrictEqual(all.slice(0, stored.length), stored)
    const next = await ask(second.port, "/sessions/s/runs", { prompt: "list ." })
    assert.strictEqual(next.status, 201)
    second.child.kill("SIGTERM")
    assert.strictEqual((await second.ended).code, 0)
    // The database has the logs too.
    if (sessions.startsWith("sqlite:")) {
      assert.deepStrictEqual(readdirSync(dirname(sessions.slice("sqlite:".length))), ["agent.db"])
    }
  })
})
