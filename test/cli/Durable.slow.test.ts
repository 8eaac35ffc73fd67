import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Redacted, Scope } from "effect"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { framesOf, send } from "../server/http.ts"
import * as Postgres from "../sql/postgres.ts"
import * as Program from "./program.ts"

const secret = "a-token-of-the-test"
const model = ["-m", "local/rules", "--yes", "--sandbox", "off", "--json"]

interface Process extends Program.Running {
  /** The line that it writes when it is ready. */
  readonly first: { readonly url?: string; readonly health?: string; readonly port?: number }
}

const started = async (args: ReadonlyArray<string>, cwd: string): Promise<Process> => {
  const running = Program.start([...args, ...model], { cwd, env: { EFFECT_AGENT_TOKEN: secret } })
  const line = await new Promise<string>((resolve, reject) => {
    let text = ""
    running.child.stdout?.on("data", (chunk: string) => {
      text += chunk
      if (text.includes("\n")) resolve(text.split("\n")[0] ?? "")
    })
    running.child.on("close", () => void running.ended.then(({ stderr }) => reject(new Error(stderr))))
  })
  return { ...running, first: JSON.parse(line) }
}

const serve = (cwd: string, store: ReadonlyArray<string> = [], ...args: ReadonlyArray<string>) =>
  started(["serve", "--durable", "--port", "0", "--grace", "200ms", ...store, ...args], cwd)

const portOf = ({ first: { url = "" } }: Process) => Number(new URL(url).port)

const ask = (server: Process, path: string, body?: object) =>
  Effect.runPromise(
    send(portOf(server), {
      path,
      headers: { authorization: `Bearer ${secret}` },
      ...(body === undefined ? {} : { body })
    })
  )

/** Reads frames until one has the tag, and leaves; or to the end of the response. */
const frames = async (server: Process, runId: string, tag?: string, after = 0) => {
  const response = await fetch(`http://127.0.0.1:${portOf(server)}/runs/${runId}/events`, {
    headers: { authorization: `Bearer ${secret}`, "last-event-id": String(after) }
  })
  let text = ""
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    if (tag !== undefined && framesOf(text).some(({ event }) => event === tag)) break
  }
  return framesOf(text)
}

const begin = async (server: Process, prompt: string, sessionId = "s") => {
  assert.strictEqual((await ask(server, "/sessions", { sessionId })).status, 201)
  const { json } = await ask(server, `/sessions/${sessionId}/runs`, { prompt })
  return String(json.runId)
}

const kill = async ({ child, ended }: Process, signal: "SIGKILL" | "SIGTERM") => {
  child.kill(signal)
  return await ended
}

/** A prompt whose command appends a line to a file, waits until another one is there, and appends a line again. */
const slow = (cwd: string) => {
  writeFileSync(
    join(cwd, "slow.sh"),
    "echo begun >> effects; while [ ! -e gate ]; do sleep 0.05; done; echo ended >> effects\n"
  )
  return "run sh slow.sh"
}
const effects = (cwd: string) =>
  existsSync(join(cwd, "effects")) ? readFileSync(join(cwd, "effects"), "utf8").trim().split("\n") : []

const isWhole = (all: ReturnType<typeof framesOf>) => {
  const ids = all.map(({ id }) => Number(id))
  assert.deepStrictEqual(
    ids,
    [...new Set(ids)].toSorted((left, right) => left - right)
  )
  assert.lengthOf(
    all.filter(({ event }) => event === "RunStart"),
    1
  )
  assert.lengthOf(
    all.filter(({ event }) => event === "RunEnd"),
    1
  )
}

describe("effect-agent serve --durable", () => {
  Program.bundled()

  it("continues a run after kill -9: the watcher gets the rest, and no once tool runs twice", async () => {
    const cwd = Program.folder({})
    const first = await serve(cwd)
    const runId = await begin(first, slow(cwd))
    const seen = await frames(first, runId, "ToolInvoked")
    while (effects(cwd).length === 0) await frames(first, runId, "ToolInvoked")
    await kill(first, "SIGKILL")
    writeFileSync(join(cwd, "gate"), "")
    const second = await serve(cwd)
    const last = Number(seen.at(-1)?.id)
    const rest = await frames(second, runId, undefined, last)
    const end = rest.at(-1)
    assert.strictEqual(end?.event, "RunEnd")
    assert.strictEqual(end?.data.status, "completed")
    isWhole([...seen.filter(({ event }) => event !== "MessageDelta"), ...rest])
    const result = rest.find(({ event }) => event === "ToolExecutionEnd")
    assert.strictEqual(result?.data.outcome, "unknown")
    assert.lengthOf(
      effects(cwd).filter((line) => line === "begun"),
      1
    )
    const { json } = await ask(second, `/runs/${runId}`)
    assert.strictEqual(json.status, "completed")
    assert.strictEqual((await kill(second, "SIGTERM")).code, 0)
  }, 60_000)

  it("asks a person about a command whose process was killed, and runs it again if the person says so", async () => {
    const cwd = Program.folder({})
    const store = ["--store", `sqlite:${join(cwd, "agent.db")}`]
    const first = await serve(cwd, store, "--unknown", "ask")
    const runId = await begin(first, slow(cwd))
    await frames(first, runId, "ToolInvoked")
    while (effects(cwd).length === 0) await frames(first, runId, "ToolInvoked")
    await kill(first, "SIGKILL")
    writeFileSync(join(cwd, "gate"), "")
    const second = await serve(cwd, store, "--unknown", "ask")
    await frames(second, runId, "QuestionAsked")
    await kill(second, "SIGKILL")
    const answered = await Effect.runPromise(
      Program.run(["approve", runId, ...store, "--answer", "again"], { cwd })
    )
    assert.strictEqual(answered.code, 0, answered.stderr)
    const third = await serve(cwd, store, "--unknown", "ask")
    const all = await frames(third, runId)
    isWhole(all)
    assert.strictEqual(all.find(({ event }) => event === "ToolExecutionEnd")?.data.outcome, "success")
    assert.deepStrictEqual(effects(cwd).toSorted(), ["begun", "begun", "ended", "ended"])
    assert.strictEqual((await kill(third, "SIGTERM")).code, 0)
  }, 60_000)

  it("closes streams without RunEnd at SIGTERM, exits with 0, and ends the run after the restart", async () => {
    const cwd = Program.folder({})
    const first = await serve(cwd)
    const runId = await begin(first, slow(cwd))
    await frames(first, runId, "ToolInvoked")
    const watched = frames(first, runId)
    await frames(first, runId, "ToolInvoked")
    const { code } = await kill(first, "SIGTERM")
    assert.strictEqual(code, 0)
    const seen = await watched
    assert.notInclude(
      seen.map(({ event }) => event),
      "RunEnd"
    )
    writeFileSync(join(cwd, "gate"), "")
    const second = await serve(cwd)
    const rest = await frames(second, runId, undefined, Number(seen.at(-1)?.id))
    assert.deepInclude(rest.at(-1), { event: "RunEnd" })
    isWhole([...seen.filter(({ event }) => event !== "MessageDelta"), ...rest])
    assert.strictEqual((await kill(second, "SIGTERM")).code, 0)
  }, 60_000)

  it("refuses a second process on one file, and other places than databases", async () => {
    const cwd = Program.folder({})
    const first = await serve(cwd)
    const second = await Effect.runPromise(
      Program.run(["serve", "--durable", "--port", "0", ...model], {
        cwd,
        env: { EFFECT_AGENT_TOKEN: secret }
      })
    )
    assert.deepStrictEqual([second.code, second.stdout], [1, ""])
    assert.match(second.stderr, /effect-agent: Another process uses .*durable\.db/)
    await kill(first, "SIGKILL")
    for (const [args, words] of [
      [["serve", "--durable", "--session-dir", cwd], "--durable keeps runs in a database"],
      [["serve", "--retain", "30d"], "--retain goes with --durable"],
      [["serve", "--unknown", "ask"], "--unknown goes with --durable"],
      [["serve", "--durable", "--lease", "4s"], "a time from 5s on"],
      [["worker"], "--store postgres://"],
      [["worker", "--store", "sqlite:a.db"], "--store postgres://"]
    ] as const) {
      const { code, stderr } = await Effect.runPromise(Program.run([...args, ...model], { cwd }))
      assert.strictEqual(code, 2, stderr)
      assert.include(stderr, words)
    }
  }, 60_000)

  it.skipIf(!Postgres.isInstalled)(
    "says what is wrong with an address, and gives a worker a port that others reach",
    async () => {
      const scope = Scope.makeUnsafe()
      const { url } = await Effect.runPromise(Scope.provide(Postgres.start, scope))
      const store = ["--store", Redacted.value(url)]
      const cwd = Program.folder({})
      const taken = await Effect.runPromise(
        Scope.provide(
          Program.server(() => {}),
          scope
        )
      )
      for (const [args, words] of [
        [["worker", "--cluster-port", new URL(taken).port], "listen EADDRINUSE"],
        [["worker", "--cluster-host", "203.0.113.7"], "listen EADDRNOTAVAIL"]
      ] as const) {
        const run = await Effect.runPromise(Program.run([...args, ...store, ...model], { cwd }))
        assert.deepStrictEqual([run.code, run.stdout], [1, ""])
        assert.include(run.stderr, `effect-agent: ${words}`)
      }
      const worker = await started(["worker", "--cluster-port", "0", ...store], cwd)
      assert.isAbove(worker.first.port ?? 0, 0)
      assert.strictEqual((await kill(worker, "SIGTERM")).code, 0)
      await Effect.runPromise(Scope.close(scope, Exit.void))
    },
    60_000
  )

  it.skipIf(!Postgres.isInstalled)(
    "shares PostgreSQL with a worker: another one continues the run of one that was killed",
    async () => {
      const scope = Effect.runSync(Scope.make())
      const database = await Effect.runPromise(Scope.provide(Postgres.start, scope))
      const store = ["--store", Redacted.value(database.url), "--lease", "5s"]
      const cwd = Program.folder({})
      const worker = await started(["worker", "--health-port", "0", "--grace", "200ms", ...store], cwd)
      assert.strictEqual((await fetch(worker.first.health ?? "")).status, 200)
      const server = await serve(cwd, store)
      const prompt = slow(cwd)
      // Both processes have some of them.
      const runs = await Promise.all(
        Array.from({ length: 6 }, (_, index) => begin(server, prompt, `session-${index}`))
      )
      const watched = runs.map((runId) => frames(server, runId))
      for (const runId of runs) await frames(server, runId, "ToolInvoked")
      while (effects(cwd).length < runs.length) await frames(server, runs[0] ?? "", "ToolInvoked")
      await kill(worker, "SIGKILL")
      writeFileSync(join(cwd, "gate"), "")
      const all = await Promise.all(watched)
      for (const each of all) {
        assert.strictEqual(each.at(-1)?.data.status, "completed")
        isWhole(each)
      }
      const outcomes = all.map((each) => each.find(({ event }) => event === "ToolExecutionEnd")?.data.outcome)
      assert.include(outcomes, "unknown")
      assert.include(outcomes, "success")
      assert.lengthOf(
        effects(cwd).filter((line) => line === "begun"),
        runs.length
      )
      const next = await started(["worker", ...store], cwd)
      assert.strictEqual((await kill(next, "SIGTERM")).code, 0)
      const away = Effect.runPromise(database.restart("6 seconds"))
      const health = async () => (await ask(server, "/health")).status
      while ((await health()) !== 503) continue
      await away
      while ((await health()) !== 200) continue
      assert.strictEqual((await kill(server, "SIGTERM")).code, 0)
      await Effect.runPromise(Scope.close(scope, Exit.void))
    },
    90_000
  )
})
