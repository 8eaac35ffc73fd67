/** The commands of the session, as a person reads them: the help, the completion and the documentation have this table. */
import { ThinkingLevel } from "../../RunOptions.ts"
import { companies } from "../agent/Vendors.ts"
import type { Session } from "./Session.ts"

export interface Row {
  readonly name: string
  readonly args: string
  readonly what: string
  /** Whether it needs a session that does not work. */
  readonly isAlone?: true
  readonly aliases?: ReadonlyArray<string>
}

export const table = [
  { name: "/help", args: "[COMMAND]", what: "keys and commands" },
  { name: "/model", args: "[ID[:EFFORT]]", what: "the model from the next model call on; without ID a list" },
  { name: "/effort", args: "LEVEL", what: "the effort of reasoning" },
  { name: "/context", args: "", what: "what fills the context" },
  { name: "/compact", args: "[WHAT]", what: "summarizes the conversation, and keeps WHAT", isAlone: true },
  { name: "/undo", args: "", what: "the files of the last prompt back", isAlone: true },
  { name: "/redo", args: "", what: "the files forth again", isAlone: true },
  { name: "/rewind", args: "[N]", what: "back to a prompt: files, conversation, or both", isAlone: true },
  { name: "/sessions", args: "", what: "the sessions of this folder" },
  { name: "/resume", args: "[ID]", what: "another session", isAlone: true },
  { name: "/new", args: "", what: "a new session", isAlone: true, aliases: ["/clear"] },
  { name: "/fork", args: "", what: "continues in a copy of the session", isAlone: true },
  { name: "/name", args: "TEXT", what: "names the session" },
  { name: "/retry", args: "", what: "sends the last prompt again that failed or was stopped", isAlone: true },
  {
    name: "/queue",
    args: "[TEXT | rm N]",
    what: "a prompt for the end of the run; without TEXT those that wait"
  },
  { name: "/steer", args: "TEXT", what: "a message to the run" },
  { name: "/tasks", args: "[clear]", what: "the task list of the model" },
  { name: "/plan", args: "[TEXT]", what: "plan mode on, or off; TEXT is the prompt" },
  { name: "/mcp", args: "[login | logout | reconnect NAME]", what: "the MCP servers" },
  { name: "/login", args: "[VENDOR]", what: "the key of a vendor" },
  { name: "/logout", args: "VENDOR", what: "forgets the key of a vendor" },
  { name: "/cost", args: "", what: "tokens, cost, calls and time" },
  { name: "/export", args: "[FILE]", what: "writes the session as .md, .json, .jsonl or .html" },
  { name: "/copy", args: "[N | code [N]]", what: "the last (Nth last) answer or code block" },
  { name: "/diff", args: "", what: "what the session changed in files" },
  { name: "/permissions", args: "[rm N]", what: "the rules for calls" },
  { name: "/hooks", args: "", what: "the command hooks" },
  { name: "/quit", args: "", what: "leaves", aliases: ["/exit"] }
] as const satisfies ReadonlyArray<Row>

export type Name = (typeof table)[number]["name"]

const rows: ReadonlyArray<Row & { readonly name: Name }> = table

/** All names, those that mean the same too. */
export const names: ReadonlyArray<string> = rows.flatMap(({ aliases = [], name }) => [name, ...aliases])

/** The command of a name. */
export const find = (name: string) =>
  rows.find((row) => row.name === name || row.aliases?.includes(name) === true)

/** The words that may follow a command. */
export const argumentsOf = (name: string, { settings }: Session): ReadonlyArray<string> => {
  switch (name) {
    case "/help":
      return names
    case "/effort":
      return ThinkingLevel.literals
    case "/model":
      return settings.fallbackModel.map(({ name }) => name)
    case "/mcp":
      return ["login", "logout", "reconnect"]
    case "/login":
    case "/logout":
      return companies.map(({ id }) => id)
    case "/tasks":
      return ["clear"]
    case "/copy":
      return ["code"]
    default:
      return []
  }
}
