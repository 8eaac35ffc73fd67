/**
 * Reads the lines of a session. A line that holds no entry is left out and reported, and the lines behind it count.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { SessionError } from "../../Session.ts"
import * as SessionEntry from "../SessionEntry.ts"
import { SessionState, firstUser } from "./SessionState.ts"
import type { SessionStorage, StoredLine } from "../SessionStorage.ts"
import * as Message from "../../Message.ts"
import type { Contents, Damage } from "./Contract.ts"
import { titleOf, entryOf } from "./Listing.ts"
import * as RunLines from "./RunLines.ts"

/** The state of a session as far as it is read. */
export class Reading {
  readonly state: SessionState
  readonly damage: Array<Damage> = []
  /** The number of entries. */
  count = 0
  private line = 0
  private readonly onEntry: (entry: SessionEntry.SessionEntry) => void

  constructor(sessionId: string, onEntry: (entry: SessionEntry.SessionEntry) => void = () => {}) {
    this.state = new SessionState(sessionId)
    this.onEntry = onEntry
  }

  add(line: StoredLine): void {
    this.line++
    if (line === "" || RunLines.isOne(line)) return
    const read = typeof line === "string" ? SessionEntry.decode(line) : Result.fail("it is not UTF-8")
    if (Result.isFailure(read)) {
      this.report(`no entry: ${read.failure}`)
      this.state.tree.addBroken(headOf(typeof line === "string" ? line : lenient.decode(line)))
      return
    }
    const entry = read.success
    this.count++
    this.onEntry(entry)
    const fault = this.state.add(entry)
    if (fault !== undefined) this.report(fault)
  }

  private report(detail: string): void {
    this.damage.push({ line: this.line, detail })
  }
}

const lenient = new TextDecoder()
const head = /"id":"([^"\\]+)","parentId":"([^"\\]+)"/

/** The place of a broken line, where its head can be read. */
const headOf = (line: string): { readonly id: string; readonly parentId: string } | undefined => {
  const [, id, parentId] = head.exec(line) ?? []
  return id === undefined || parentId === undefined ? undefined : { id, parentId }
}

/** Reads a session from its first line to its last. */
export const read = (
  storage: SessionStorage,
  sessionId: string,
  onEntry?: (entry: SessionEntry.SessionEntry) => void
): Effect.Effect<Reading, SessionError> =>
  Effect.suspend(() => {
    const reading = new Reading(sessionId, onEntry)
    const add = (lines: ReadonlyArray<StoredLine>) =>
      Effect.sync(() => {
        for (const line of lines) reading.add(line)
      })
    return Effect.as(Stream.runForEach(storage.lines(sessionId), add), reading)
  })

/** A whole session. */
export const contents = (storage: SessionStorage, sessionId: string): Effect.Effect<Contents, SessionError> =>
  Effect.gen(function* () {
    const entries: Array<SessionEntry.SessionEntry> = []
    const stored = yield* storage.find(sessionId)
    const { damage, state } = yield* read(storage, sessionId, (entry) => void entries.push(entry))
    const { name, start } = state
    const user = firstUser(state)
    const session = {
      ...stored,
      cwd: start?.cwd ?? "",
      ...(name === "" ? {} : { name }),
      title: name === "" ? titleOf(user === undefined ? "" : Message.textOf(user)) : name
    }
    return { session, entries, labels: state.labels, view: state.restored(), damage }
  })

// ───────────────────────── A session as a text

export const exported = (
  storage: SessionStorage,
  sessionId: string,
  format: "jsonl" | "md"
): Stream.Stream<string, SessionError> =>
  format === "jsonl"
    ? Stream.map(storage.lines(sessionId), (lines) =>
        lines
          .flatMap((line) => entryOf(line) ?? [])
          .reduce((text, entry) => `${text}${SessionEntry.encode(entry)}\n`, "")
      )
    : Stream.unwrap(
        Effect.map(contents(storage, sessionId), ({ session, view }) =>
          Stream.fromIterable([`# ${session.title || session.sessionId}\n`, ...view.messages.map(markdownOf)])
        )
      )

const markdownOf = (message: Message.Message): string => {
  switch (message.role) {
    case "user":
      return section("User", message.content.map(blockOf))
    case "assistant":
      return section("Assistant", message.content.map(blockOf))
    case "toolResult":
      return section(`Result of ${message.toolName}`, [fenced(Message.textOf(message))])
    case "custom":
      return ""
  }
}

const section = (title: string, blocks: ReadonlyArray<string>): string => {
  const text = blocks.filter((block) => block !== "").join("\n\n")
  return text === "" ? "" : `\n## ${title}\n\n${text}\n`
}

type Block = Message.User["content"][number] | Message.Assistant["content"][number]

const blockOf = (block: Block): string => {
  switch (block.type) {
    case "text":
      return block.text
    case "toolCall":
      return `Call of ${block.name}:\n\n${fenced(block.rawArguments, "json")}`
    case "image":
    case "file":
    case "media":
      return `[${block.type}]`
    case "source":
      return block.url === undefined ? "" : `<${block.url}>`
    default:
      return ""
  }
}

/** A code block, whose fence is longer than each row of backticks in the text. */
const fenced = (text: string, language = ""): string => {
  const rows = Array.from(text.matchAll(/`{3,}/g), ([row]) => row.length)
  const fence = "`".repeat(Math.max(2, ...rows) + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
