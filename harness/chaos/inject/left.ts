/**
 * What a session leaves: the effects of its tools, each as often as it was told, and nothing that is still held.
 */
import { Effect } from "effect"
import type { AgentEvent } from "effect-agent"
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import * as Session from "./session.ts"

/** What is wrong with the files, by what the events say of the calls. */
export const behind = (root: string, events: ReadonlyArray<AgentEvent.AgentEvent>): ReadonlyArray<string> => {
  const ends = events.filter(
    (event): event is AgentEvent.OfTag<"ToolExecutionEnd"> => event._tag === "ToolExecutionEnd"
  )
  return [...lines(root, ends), ...files(root, ends)]
}

type Ends = ReadonlyArray<AgentEvent.OfTag<"ToolExecutionEnd">>

/** A call that left a line left it once, and one that says it did has. */
const lines = (root: string, ends: Ends): ReadonlyArray<string> => {
  const path = join(root, Session.log)
  const left = existsSync(path) ? readFileSync(path, "utf8").split("\n") : []
  return ends.flatMap(({ outcome, toolCallId, toolName }) => {
    if (toolName !== "append" && toolName !== "shell") return []
    const times = left.filter((line) => line === toolCallId).length
    const isWrong = times > 1 || (outcome === "success" && times === 0)
    return isWrong ? [`${toolName} ${toolCallId}: ${outcome}, done ${times} times`] : []
  })
}

/** A file is whole, and as the last call that went well has left it, unless another changed it after that. */
const files = (root: string, ends: Ends): ReadonlyArray<string> =>
  Object.entries(Session.contents).flatMap(([path, contents]) => {
    const content = existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : undefined
    if (content !== undefined && !contents.includes(content)) return [`${path} holds ${content}`]
    const good = ends.filter(
      ({ outcome, toolCallId }) => outcome === "success" && Session.lefts.get(toolCallId)?.path === path
    )
    return good.length > 0 && content === undefined ? [`${path} was written, and is not there`] : []
  })

/** Files that a write makes beside the one it writes. */
const temporary = (root: string): ReadonlyArray<string> =>
  readdirSync(root, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".tmp"))

/** What is still held some time after all is over: files, processes, and what is counted. */
export const held = (
  root: string,
  counts: () => Readonly<Record<string, number>>
): Effect.Effect<ReadonlyArray<string>> => {
  const look = () => [
    ...temporary(root),
    ...links("/proc/self/fd").filter((path) => path.startsWith(root)),
    ...children().flatMap((pid) => (linkOf(`/proc/${pid}/cwd`) === root ? [`process ${pid}`] : [])),
    ...Object.entries(counts()).flatMap(([name, count]) => (count === 0 ? [] : [`${count} ${name}`]))
  ]
  return Effect.suspend(() => (look().length === 0 ? Effect.void : Effect.sleep("20 millis"))).pipe(
    Effect.repeat({ while: () => look().length > 0, times: 150 }),
    Effect.map(() => look().map((what) => `still held: ${what}`))
  )
}

const links = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).flatMap((name) => linkOf(join(folder, name)) ?? [])

/** Nothing for what is gone meanwhile. */
const linkOf = (path: string): string | undefined => {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** Of every thread of this process. */
const children = (): ReadonlyArray<string> =>
  readdirSync("/proc/self/task").flatMap((thread) => {
    const path = `/proc/self/task/${thread}/children`
    return existsSync(path) ? (readFileSync(path, "utf8").match(/\d+/g) ?? []) : []
  })
