/**
 * The view of a tool call in an editor: its title and kind, the files it is about, and the change that it makes.
 */
import type { ToolCallContent, ToolCallLocation, ToolKind } from "@agentclientprotocol/sdk"
import * as Predicate from "effect/Predicate"

/**
 * The view of a tool call.
 *
 * @category models
 * @since 0.2.0
 */
export interface View {
  /** The title, one line. */
  readonly title: string
  /** The kind, by which an editor chooses an icon. */
  readonly kind: ToolKind
  /** The files that the call is about, with absolute paths. Default: none. */
  readonly locations?: ReadonlyArray<ToolCallLocation>
  /** The change of files that the call makes. Default: none. */
  readonly content?: ReadonlyArray<ToolCallContent>
}

const kinds: ReadonlyMap<string, ToolKind> = new Map([
  ["read", "read"],
  ["list", "read"],
  ["read_artifact", "read"],
  ["skill", "read"],
  ["find", "search"],
  ["grep", "search"],
  ["tool_search", "search"],
  ["web_search", "search"],
  ["web_fetch", "fetch"],
  ["write", "edit"],
  ["edit", "edit"],
  ["shell", "execute"]
])

/** The view of a call of one of the tools of `effect-agent/tools`, or of another tool by its name and params. */
export const of = (name: string, params: unknown, cwd: string | undefined): View => {
  const kind = kinds.get(name) ?? "other"
  const path = kind === "other" || kind === "execute" ? undefined : textIn(params, "path")
  const place = path === undefined || cwd === undefined ? path : absolute(path, cwd)
  return {
    title: titleOf(name, params),
    kind,
    ...(place === undefined ? {} : { locations: [{ path: place }] }),
    ...(place === undefined || kind !== "edit" ? {} : { content: changesOf(place, params) })
  }
}

const absolute = (path: string, cwd: string): string =>
  /^([/\\]|[A-Za-z]:[\\/])/.test(path) ? path : `${cwd.replace(/[\\/]$/, "")}/${path.replace(/^\.\//, "")}`

const maxTitle = 160

// In reading order: the question, command or pattern, then the place.
const shown = ["question", "command", "pattern", "path", "url", "query"]

const titleOf = (name: string, params: unknown): string => {
  const values = shown.flatMap((key) => textIn(params, key) ?? [])
  const line = `${name} ${values.join(" in ")}`.replaceAll(/\s+/g, " ").trim()
  return line.length > maxTitle ? `${line.slice(0, maxTitle - 1)}…` : line
}

const changesOf = (path: string, params: unknown): ReadonlyArray<ToolCallContent> => {
  const content = textIn(params, "content")
  if (content !== undefined) return [{ type: "diff", path, newText: content }]
  const edits: unknown = Predicate.hasProperty(params, "edits") ? params.edits : undefined
  return [params, ...(Array.isArray(edits) ? edits : [])].flatMap((edit: unknown) => {
    const newText = textIn(edit, "newText")
    const oldText = textIn(edit, "oldText")
    return newText === undefined || oldText === undefined ? [] : [{ type: "diff", path, oldText, newText }]
  })
}

const textIn = (params: unknown, name: string): string | undefined =>
  Predicate.hasProperty(params, name) && typeof params[name] === "string" ? params[name] : undefined
