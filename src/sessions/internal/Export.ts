/**
 * Writes sessions as text.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Message from "../../Message.ts"
import type { SessionError } from "../../Session.ts"
import * as Reading from "./Reading.ts"
import { entryOf } from "./Listing.ts"
import * as SessionEntry from "../SessionEntry.ts"
import type { SessionStorage } from "../SessionStorage.ts"

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
        Effect.map(Reading.contents(storage, sessionId), ({ session, view }) =>
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
