/** One conversation: it is killed once or twice, and then comes to its end. */
import { Effect, Option } from "effect"
import { SessionStore } from "effect-agent/sessions"
import { spawn } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Random } from "../Random.ts"
import * as Stores from "./stores.ts"

export interface Round {
  readonly kind: string
  /** The place of the sessions. */
  readonly url: string
  readonly seed: number
  /** The script of the player. */
  readonly player: string
  /** A folder for the traces of tools. */
  readonly home: string
}

/** What came of a conversation. */
export interface Played {
  readonly kind: string
  readonly kills: number
  readonly messages: number
  readonly ended: number
  readonly unknown: number
  /** Milliseconds that the opening of a session took whose writer had been killed. */
  readonly slowest: number
  readonly violations: ReadonlyArray<string>
}

/** When a process is killed: at one of its writes, after a time in milliseconds, or never. */
interface Kill {
  readonly write?: number
  readonly after?: number
}

interface Process {
  readonly printed: ReadonlyArray<string>
  readonly isKilled: boolean
}

/** More writes than a conversation has: such a number kills none. */
const mostWrites = 75
/** Milliseconds that a conversation takes at most, after its start. */
const longest = 400
/** Milliseconds after which a process that has not ended hangs. */
const patience = 60_000

export const round = ({ home, kind, player, seed, url }: Round): Effect.Effect<Played> =>
  Effect.promise(async () => {
    const random = new Random(seed)
    const sessionId = `s${seed}`
    const effects = join(home, `${sessionId}.log`)
    const play = (kill: Kill) => {
      const args = [url, sessionId, effects, random.upTo(1_000_000), kill.write ?? 0]
      return started(player, args.map(String), kill.after)
    }
    const processes = [await play(killOf(random, mostWrites))]
    processes.push(await play(killOf(random, 12)))
    processes.push(await play({}))
    const lines = existsSync(effects) ? readFileSync(effects, "utf8").trim().split("\n") : []
    return await judged({ kind, seed, url, sessionId, processes, lines })
  })

const killOf = (random: Random, writes: number): Kill =>
  random.once(3) ? { after: random.upTo(longest) } : { write: 1 + random.upTo(writes - 1) }

const started = (player: string, args: ReadonlyArray<string>, after: number | undefined): Promise<Process> =>
  new Promise((resolve) => {
    let printed = ""
    const child = spawn(process.execPath, [player, ...args], { stdio: ["ignore", "pipe", "inherit"] })
    const hung = setTimeout(() => child.kill("SIGKILL"), patience)
    child.stdout.on("data", (chunk: Buffer) => {
      if (printed === "" && after !== undefined) setTimeout(() => child.kill("SIGKILL"), after)
      printed += chunk.toString()
    })
    child.on("close", (_, signal) => {
      clearTimeout(hung)
      resolve({
        printed: printed.split("\n").filter((line) => line !== ""),
        isKilled: signal !== null
      })
    })
  })

interface Traces {
  readonly kind: string
  readonly seed: number
  readonly url: string
  readonly sessionId: string
  readonly processes: ReadonlyArray<Process>
  /** The lines that the tools wrote. */
  readonly lines: ReadonlyArray<string>
}

const wordsOf = (printed: ReadonlyArray<string>, first: string): ReadonlyArray<ReadonlyArray<string>> =>
  printed.map((line) => line.split(" ")).filter(([word]) => word === first)

const judged = async ({ kind, lines, processes, seed, sessionId, url }: Traces): Promise<Played> => {
  const printed = processes.flatMap(({ printed }) => printed)
  const messages = wordsOf(printed, "message").map(([, id = ""]) => id)
  const ended = wordsOf(printed, "ended")
  const kills = processes.filter(({ isKilled }) => isKilled).length
  const contents = await Effect.runPromise(
    Effect.option(
      Effect.scoped(Effect.flatMap(Stores.open(url), (storage) => SessionStore.make(storage).read(sessionId)))
    )
  )
  const { damage = [], entries = [] } =
    Option.getOrElse(contents, () => ({ damage: undefined, entries: undefined })) ?? {}
  const stored = entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : []))
  const ids = new Set(stored.map(({ id }) => id))
  const results = new Map(
    stored.flatMap((message) =>
      message.role === "toolResult" ? [[message.toolCallId, message.outcome] as const] : []
    )
  )
  const begun = lines.filter((line) => line.startsWith("begin ")).map((line) => line.slice(6))
  const last = processes.at(-1)
  const faults = [
    ...(Option.isNone(contents) ? ["the session cannot be read"] : []),
    ...damage.slice(kind === "jsonl" ? kills : 0).map(({ detail, line }) => `line ${line}: ${detail}`),
    ...messages.filter((id) => !ids.has(id)).map((id) => `message ${id} is lost`),
    ...begun.filter((id, index) => begun.indexOf(id) !== index).map((id) => `${id} ran twice`),
    ...ended.flatMap(([, id = "", outcome]) =>
      results.get(id) === outcome
        ? []
        : [`${id} ended with ${outcome}, and its result says ${results.get(id)}`]
    ),
    ...wordsOf(printed, "fault").map((words) => words.join(" ")),
    ...wordsOf(printed, "failed").map((words) => words.join(" ")),
    ...(last?.printed.at(-1) === "completed" ? [] : [`the end is ${last?.printed.at(-1)}`])
  ]
  return {
    kind,
    kills,
    messages: messages.length,
    ended: ended.length,
    unknown: [...results.values()].filter((outcome) => outcome === "unknown").length,
    slowest: Math.max(
      0,
      ...wordsOf(printed, "open")
        .slice(1)
        .map(([, millis]) => Number(millis))
    ),
    violations: faults.map((fault) => `seed ${seed} (${kind}): ${fault}`)
  }
}
