/**
 * `npm run bench [-- [durable | program] [--only W1,W2] [--rounds N] [--quick] [--peers]]`: prints what raw clients and this library cost, what
 * runs in a database do, or what the interactive program does on a terminal, as Markdown. Every measurement is a process of its own, all of a round are taken one after the other, and a ratio is the
 * median of those within the rounds. CPU is that of the process that runs the agents, user and system.
 */
import { Effect } from "effect"
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { cpus, loadavg } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import * as Contenders from "./contenders.ts"
import type { Contender } from "./contenders.ts"
import * as Jobs from "./jobs.ts"
import type { Job } from "./jobs.ts"
import * as Startup from "./startup.ts"
import * as Bars from "./program/bars.ts"
import { type Row, table } from "./table.ts"
import type { Figures } from "./workloads.ts"

const { positionals, values: options } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string" },
    rounds: { type: "string" },
    quick: { type: "boolean", default: false },
    peers: { type: "boolean", default: false }
  }
})

const startServer = async () => {
  const server = fork(join(import.meta.dirname, "server.ts"))
  const [{ port }] = await once(server, "message")
  return { server, origin: `http://127.0.0.1:${port}` }
}

type Measured = Figures | { readonly trouble: string }

/** Longer than anything takes. */
const patience = 300_000

/** One measurement in a process of its own. */
const measure = async (contender: Contender, job: Job, size: ReadonlyArray<number>, origin: string) => {
  const child = fork(
    join(import.meta.dirname, "measure.ts"),
    [contender.path, job.workload, origin, ...size.map(String)],
    {
      execArgv: [...process.execArgv, "--expose-gc"],
      env: { ...process.env, ...(contender.server === undefined ? {} : { BENCH_SERVER: contender.server }) },
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      timeout: patience
    }
  )
  return answerOf(child)
}

const answerOf = (child: ChildProcess): Promise<Measured> =>
  new Promise((resolve) => {
    child.once("message", (message: { readonly figures?: Figures; readonly trouble?: string }) =>
      resolve(message.figures ?? { trouble: message.trouble ?? "it said nothing" })
    )
    child.once("exit", (code, signal) => resolve({ trouble: `it ended with ${signal ?? code}` }))
  })

/** All sizes of one contender in one round, as one set of figures: those of the nth size end in `n`. */
const measureAll = async (contender: Contender, job: Job, origin: string): Promise<Measured> => {
  const all: Record<string, number> = {}
  for (const [index, { size }] of job.sizes.entries()) {
    const measured = await measure(contender, job, size, origin)
    if ("trouble" in measured) return measured
    for (const [figure, value] of Object.entries(measured)) all[`${figure}${index}`] = value
  }
  return all
}

/** From one round to the next the first goes last, so that nobody always comes after the same one. */
const turned = <A>(list: ReadonlyArray<A>, by: number): ReadonlyArray<A> => {
  const at = by % list.length
  return [...list.slice(at), ...list.slice(0, at)]
}

const play = async (
  job: Job,
  contenders: ReadonlyArray<Contender>,
  rounds: number,
  origin: string
): Promise<string> => {
  const rows = contenders.map((contender) => ({ contender, name: contender.name, rounds: Array<Measured>() }))
  for (let round = 0; round < rounds; round++) {
    for (const row of turned(rows, round)) row.rounds.push(await measureAll(row.contender, job, origin))
  }
  const columns = job.sizes.flatMap(({ label }, index) =>
    job.columns.map((column) => ({
      ...column,
      figure: `${column.figure}${index}`,
      label: label === undefined ? column.label : `${label}, ${column.label}`
    }))
  )
  return table(`${job.id}: ${job.title}`, columns, rows)
}

/** Packages with their versions, as they are installed in a folder. */
const versionsOf = (names: ReadonlyArray<string>, folder = ""): string =>
  names
    .map((name) => {
      const path = join(import.meta.dirname, "../../node_modules", folder, name, "package.json")
      return `${name} ${JSON.parse(readFileSync(path, "utf8")).version}`
    })
    .join(", ")

/** What a reader must know to judge the figures. */
const circumstances = (): string => {
  const machine = `${cpus().length} cores of ${cpus()[0]?.model}, load ${loadavg()[0]?.toFixed(1)}`
  const versions = versionsOf(["effect", "undici"])
  return `Node ${process.version}, ${versions}${options.peers ? `, ${versionsOf(Contenders.packages, Contenders.peersFolder)}` : ""}; ${machine}`
}

const part = options.quick ? 0.1 : 1
const only = options.only?.split(",")
const wanted = (id: string): boolean => only === undefined || only.includes(id)
const isDurable = positionals[0] === "durable"
const contenders = isDurable
  ? Contenders.durable()
  : [...Contenders.ours, ...(options.peers ? Contenders.peers() : [])]
const all = isDurable ? Jobs.durable(part) : Jobs.jobs(part)
const chosen = all.filter(({ id }) => wanted(id))
const isStartup = !isDurable && wanted("W5")
const rounds = (usual: number): number => Number(options.rounds ?? (options.quick ? 1 : usual))

if (positionals[0] === "program") {
  console.log(`${circumstances()}\n`)
  const entry = join(import.meta.dirname, "../../dist/cli/main.js")
  await Effect.runPromise(
    Bars.print(entry, {
      only,
      rounds: options.rounds === undefined ? undefined : Number(options.rounds),
      isQuick: options.quick
    })
  )
  process.exit(0)
}
if ((chosen.length === 0 && !isStartup) || positionals.length > (isDurable ? 1 : 0)) {
  const known = [...Jobs.jobs(1), ...Jobs.durable(1)].map(({ id }) => id).join(", ")
  console.error(
    `Usage: npm run bench [-- [durable | program] [--only ID,ID] [--rounds N] [--quick] [--peers]   IDs: W5, ${known}`
  )
  process.exit(2)
}
console.log(`${circumstances()}\n`)
const { origin, server } = await startServer()
for (const job of chosen) {
  console.log(
    await play(job, job.onlyOurs === true ? Contenders.ours : contenders, rounds(job.rounds), origin)
  )
}
server.disconnect()
if (isStartup) {
  const rows: ReadonlyArray<Row> = await Startup.startup(contenders, rounds(7))
  console.log(table("W5: A process that begins", Startup.columns, rows))
}
