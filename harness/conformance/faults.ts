/**
 * A provider that misbehaves, over real sockets: what the library does, with its defaults, for each fault on each wire.
 * `drive.mjs` of the folder runs the cases in processes of `faultWorker.ts` and judges them; here its verdicts become
 * cases, and every error must also be the one that a program would look for.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Judged, Kind } from "./suite.ts"
import type { Words } from "./words.ts"

export const kind: Kind = async (dir) => {
  const load = (file: string): Promise<Words> => import(pathToFileURL(join(dir, file)).href)
  const { FACES, hasFace } = await load("judge.mjs")
  const { startHostileServer } = await load("hostile-server.mjs")
  // Only for the list: each drive has a server of its own.
  const server = await startHostileServer()
  server.close()
  const drives = new Drives(dir)
  const cases = FACES.flatMap((face: string) =>
    server.cases
      .filter((each: Words) => hasFace(each, face))
      .map(({ id }: Words) => ({ name: `${face}/${id}`, run: () => drives.judge(face, id) }))
  )
  return { cases, concurrency: cases.length, figures }
}

/** The cases of the kit in which at least one of seven libraries failed with its defaults, when they were compared. */
const hard: ReadonlySet<string> = new Set(
  [
    "conn-reset-once keepalive-stale redirect-cross",
    "http-401-echo http-408-once http-429-sec http-429-ms http-429-absurd http-429-garbage http-500-once http-529-once",
    "sse-unknown-event stall-head stall-first stall-text stall-done-open trunc-text",
    "dup-tool-id tool-no-id tool-finish-stop tool-none tool-loop tool-throw tool-cyclic tool-undefined",
    "abort-tool consumer-break slow-consumer"
  ].flatMap((line) => line.split(" "))
)

/** Face by face; the hard ones; and the errors that a program can tell apart, by a tag of their own and fields. */
const figures = (verdicts: ReadonlyMap<string, Judged>): ReadonlyArray<string> => {
  const all = [...verdicts].map(([name, judged]) => {
    const [face = "", id = ""] = name.split("/")
    return { face, id, passed: judged.problems.length === 0, actual: judged.actual }
  })
  const share = (title: string, of: typeof all) =>
    `${title}: ${of.filter(({ passed }) => passed).length} of ${of.length}`
  const faces = [...new Set(all.map(({ face }) => face))]
  const errors = all.flatMap(({ actual }) => errorOf(actual) ?? [])
  const told = errors.filter((json) => toldBy(json) !== undefined && hasFields(json))
  return [
    ...faces.map((face) =>
      share(
        face,
        all.filter((each) => each.face === face)
      )
    ),
    ...faces.map((face) =>
      share(
        `${face}, hard`,
        all.filter((each) => each.face === face && hard.has(each.id))
      )
    ),
    `errors told apart: ${told.length} of ${errors.length}`
  ]
}

const errorOf = (actual: Words): string | undefined => actual?.err?.json

/** The reason says more than its name. The text may have been cut behind it. */
const hasFields = (json: string): boolean => {
  const [, failure, reason] = json.matchAll(/"_tag":"(\w+)"(,"\w+":)?/g)
  const innermost = failure?.[1] === "ProviderError" ? reason : failure
  return innermost?.[2] !== undefined
}

/** Faces that are driven at once: they mostly wait, for a silence or between two tries. */
const atOnce = 4

type Tell = (judged: Judged) => void

/** Drives together what is asked for together: starting a process for each case would take longer than the cases. */
class Drives {
  private readonly dir: string
  private readonly asked = new Map<string, Map<string, Tell>>()

  constructor(dir: string) {
    this.dir = dir
  }

  judge(face: string, id: string): Promise<Judged> {
    if (this.asked.size === 0) setImmediate(() => void this.drive())
    return new Promise((tell) => {
      const cases = this.asked.get(face) ?? new Map<string, Tell>()
      this.asked.set(face, cases.set(id, tell))
    })
  }

  private async drive(): Promise<void> {
    const faces = [...this.asked].values()
    const lane = async () => {
      for (const [face, cases] of faces) await this.driveFace(face, cases)
    }
    await Promise.all(Array.from({ length: atOnce }, lane))
  }

  private async driveFace(face: string, cases: ReadonlyMap<string, Tell>): Promise<void> {
    const { results, said } = await drive(this.dir, face, [...cases.keys()])
    for (const [id, tell] of cases) {
      const actual = results.find((result: Words) => result.case === id)
      tell({ problems: actual === undefined ? [`was not driven: ${said}`] : problemsOf(actual), actual })
    }
  }
}

/** Runs the cases of one face. `said`: what the driver printed, for when it gives no results. */
const drive = (dir: string, face: string, ids: ReadonlyArray<string>): Promise<Words> =>
  new Promise((done) => {
    const folder = mkdtempSync(join(tmpdir(), "faults-"))
    const json = join(folder, "results.json")
    const worker = join(import.meta.dirname, "faultWorker.ts")
    const args = ["--worker", worker, "--faces", face, "--cases", ids.join(), "--json", json]
    // A fork of the driver has none of our flags, but our environment.
    const env = { ...process.env, FAULT_KIT: dir, NODE_OPTIONS: "--conditions=effect-agent-source" }
    execFile(process.execPath, [join(dir, "drive.mjs"), ...args], { env }, (_, stdout, stderr) => {
      const said = `${stdout}${stderr}`.trim()
      done({ said, results: readResults(json) })
      rmSync(folder, { recursive: true })
    })
  })

const readResults = (json: string): ReadonlyArray<Words> => {
  try {
    return JSON.parse(readFileSync(json, "utf8")).results
  } catch {
    return []
  }
}

const problemsOf = ({ case: id, err, pass, verdict, why }: Words): ReadonlyArray<string> => {
  if (!pass) return [`${verdict}: ${why ?? ""}`]
  const told = err === undefined ? "no error" : toldBy(err.json)
  const expected = failures[id] ?? told
  if (told === undefined) return [`an error without a type: ${err.json}`]
  return told === expected ? [] : [`told as ${told}, not as ${expected}`]
}

/** The innermost tag of a run's failure, with its kind: what a program tells it by. */
const toldBy = (json: string): string | undefined => {
  const [run, failure, reason] = [...json.matchAll(/"_tag":"(\w+)"/g)].map(([, tag]) => tag)
  if (run !== "RunFailed") return undefined
  if (failure !== "ProviderError") return failure
  const kind = /"kind":"(\w+)"/.exec(json)?.[1]
  return kind === undefined ? reason : `${reason} ${kind}`
}

/** What must be told by which reason. */
const failures: Readonly<Record<string, string>> = {
  "conn-refused": "Transport refused",
  "tls-plain": "Transport tls",
  "conn-reset-always": "Transport reset",
  "head-garbage": "Transport badHttp",
  "http-400": "InvalidRequest",
  "http-401-echo": "Unauthenticated",
  "http-401": "Unauthenticated",
  "http-404-model": "NotFound",
  "http-429-absurd": "RateLimited",
  "http-503-always": "ServerError",
  "http-502-html": "ServerError",
  "http-200-html": "Protocol contentType",
  "http-200-jsonerr": "ServerError",
  "http-200-empty": "Protocol empty",
  "redirect-cross": "Transport redirect",
  "stall-head": "StreamStalled firstByte",
  "stall-first": "StreamStalled idle",
  "stall-text": "StreamStalled idle",
  "trunc-text": "StreamTruncated",
  "trunc-text-rst": "StreamTruncated",
  "trunc-tool": "StreamTruncated",
  "trunc-chunked": "StreamTruncated",
  "json-garbage": "Protocol badJson",
  "err-mid": "Overloaded",
  "tool-none": "Protocol noToolCalls",
  "tool-loop": "LimitExceeded"
}
