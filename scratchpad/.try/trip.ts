/**
 * Counts the files and functions of the package that one prompt over HTTP passes, by the coverage of V8, and prints them as JSON.
 *
 *     node --conditions effect-agent-source harness/bench/servedTrip.ts
 *
 * The prompt makes a session, starts a run with one tool call, and watches it to its end. The count is what a server with the prompt has
 * passed and one without it has not.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { fileURLToPath } from "node:url"

/** What a prompt passed. */
export interface ServedTrip {
  readonly files: number
  readonly functions: number
}

const program = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url))
const token = "t0ken"

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  return typeof address === "object" && address !== null ? address.port : 0
}

const call = async (url: string, body?: object): Promise<Response> => {
  const response = await fetch(url, {
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) })
  })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  return response
}

/** A prompt whose events are read to their end. */
const prompt = async (address: string): Promise<void> => {
  const { sessionId } = await (await call(`${address}/sessions`, {})).json()
  const started = await call(`${address}/sessions/${sessionId}/runs`, { prompt: "run sleep 0.2" })
  const { runId } = await started.json()
  const events = await (await call(`${address}/runs/${runId}/events`)).text()
  if (!events.includes("event: RunEnd")) throw new Error(`The run has no end: ${events.slice(-300)}`)
}

/** The functions that a server ran, by their files. */
type Passed = ReadonlyMap<string, ReadonlySet<string>>

interface Function {
  readonly functionName: string
  readonly ranges: ReadonlyArray<{ readonly startOffset: number; readonly count: number }>
}
interface Coverage {
  readonly result: ReadonlyArray<{ readonly url: string; readonly functions: ReadonlyArray<Function> }>
}

const read = (folder: string): Passed => {
  const passed = new Map<string, Set<string>>()
  for (const name of readdirSync(folder)) {
    const { result }: Coverage = JSON.parse(readFileSync(join(folder, name), "utf8"))
    for (const { functions, url } of result) {
      const file = /\/src\/(.*)$/.exec(url.includes("node_modules") ? "" : url)?.[1]
      if (file === undefined) continue
      const ran = passed.get(file) ?? new Set()
      passed.set(file, ran)
      for (const { functionName, ranges } of functions) {
        const [range] = ranges
        // A range from the start of the file is the evaluation of the module.
        if (range !== undefined && range.startOffset > 0 && range.count > 0)
          ran.add(`${functionName} ${range.startOffset}`)
      }
    }
  }
  return passed
}

const serve = async (flags: ReadonlyArray<string>, isPrompted: boolean): Promise<Passed> => {
  const folder = mkdtempSync(join(tmpdir(), "effect-agent-served-"))
  const coverage = join(folder, "coverage")
  const port = await freePort()
  const address = `http://127.0.0.1:${port}`
  const args = ["serve", ...flags, "--port", String(port), "--model", "local/rules", "--cwd", folder, "--yes"]
  const child = spawn(process.execPath, ["--conditions", "effect-agent-source", program, ...args], {
    env: {
      ...process.env,
      NODE_V8_COVERAGE: coverage,
      EFFECT_AGENT_HOME: join(folder, "home"),
      EFFECT_AGENT_TOKEN: token
    },
    stdio: "ignore"
  })
  const ended = once(child, "exit")
  try {
    const isReady = () =>
      fetch(`${address}/health`).then(
        ({ ok }) => ok,
        () => false
      )
    while (!(await isReady())) await Promise.race([sleep(100), ended.then(() => Promise.reject(child))])
    if (isPrompted) await prompt(address)
    child.kill("SIGTERM")
    await ended
    return read(coverage)
  } finally {
    child.kill("SIGKILL")
    rmSync(folder, { recursive: true, force: true })
  }
}

const between = (idle: Passed, prompted: Passed): ServedTrip => {
  const counts = [...prompted].flatMap(([file, ran]) => {
    const before = idle.get(file)
    const more = [...ran].filter((name) => before?.has(name) !== true)
    return more.length > 0 ? [more.length] : []
  })
  return { files: counts.length, functions: counts.reduce((sum, count) => sum + count, 0) }
}

/** What one prompt passes in a server with some flags. */
export const servedTrip = async (...flags: ReadonlyArray<string>): Promise<ServedTrip> =>
  between(await serve(flags, false), await serve(flags, true))

export {serve}
if (import.meta.main)
  console.log(JSON.stringify({ durable: await servedTrip("--durable"), plain: await servedTrip() }))
for (const [n, flags] of [["plain",[]],["durable",["--durable"]]] as const) {
  const idle = await serve(flags,false), pr = await serve(flags,true)
  console.log("==",n)
  for (const [f, ran] of [...pr].sort()) { const b=idle.get(f); const more=[...ran].filter(x=>b?.has(x)!==true); if (more.length) console.log(more.length, f) }
}
