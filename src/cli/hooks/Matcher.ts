/** Matchers of command hooks, and the names that Claude Code has for tools and their params. */
import * as Schema from "effect/Schema"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"

/** A JSON object. */
export type Members = Readonly<Record<string, Schema.Json>>

/** The names of a tool for a hook: ours, or those of Claude Code. */
export type Naming = "own" | "claude"

/** How a matcher covers a subject: under which names, `undefined` if it does not. */
export type Matcher = (subject: string) => Naming | undefined

/** A tool by the names of Claude Code: its name, and its params by ours. */
interface Alias {
  readonly name: string
  readonly members: Readonly<Record<string, string>>
}

const aliases: ReadonlyMap<string, Alias> = new Map([
  ["shell", { name: "Bash", members: {} }],
  ["read", { name: "Read", members: { path: "file_path" } }],
  ["write", { name: "Write", members: { path: "file_path" } }],
  [
    "edit",
    {
      name: "Edit",
      members: {
        path: "file_path",
        oldText: "old_string",
        newText: "new_string",
        replaceAll: "replace_all"
      }
    }
  ],
  ["find", { name: "Glob", members: {} }],
  ["grep", { name: "Grep", members: {} }],
  ["list", { name: "LS", members: {} }]
])

/** Reads a matcher: a name, names with `|`, or a regular expression over the whole name. Fails with what is wrong in it. */
export const parse = (text: string | undefined): Result.Result<Matcher, string> => {
  if (text === undefined || text === "" || text === "*") return Result.succeed(() => "own")
  return Result.map(
    compiled(text),
    (pattern): Matcher =>
      (subject) => {
        if (pattern.test(subject)) return "own"
        const alias = aliases.get(subject)
        return alias !== undefined && pattern.test(alias.name) ? "claude" : undefined
      }
  )
}

const compiled = (text: string): Result.Result<RegExp, string> =>
  Result.try({
    try: () => new RegExp(`^(?:${text})$`, "u"),
    catch: (thrown) => (thrown instanceof Error ? thrown.message : String(thrown))
  })

/** The name of a tool for a hook. */
export const nameOf = (tool: string, naming: Naming): string =>
  naming === "own" ? tool : (aliases.get(tool)?.name ?? tool)

/** The params of a call, by the names of a hook. */
export const toHook = (tool: string, naming: Naming, params: Members): Members => {
  if (naming === "own") return params
  const named = renamed(params, membersOf(tool))
  const { timeout } = named
  // Claude Code counts the time of a command in milliseconds.
  return tool === "shell" && typeof timeout === "number" ? { ...named, timeout: timeout * 1000 } : named
}

/** The params that a hook answers with, by our names. It may use them too. */
export const fromHook = (tool: string, naming: Naming, params: Members): Members => {
  if (naming === "own") return params
  const back = Object.fromEntries(Object.entries(membersOf(tool)).map(([own, other]) => [other, own]))
  const named = renamed(params, back)
  const { timeout } = named
  return tool === "shell" && typeof timeout === "number" ? { ...named, timeout: timeout / 1000 } : named
}

const membersOf = (tool: string): Readonly<Record<string, string>> => aliases.get(tool)?.members ?? {}

const renamed = (params: Members, names: Readonly<Record<string, string>>): Members =>
  Object.fromEntries(
    Object.entries(params).map(([name, value]) => {
      const edits: Schema.Json =
        name === "edits" && Array.isArray(value)
          ? value.map((edit: Schema.Json) => (isMembers(edit) ? renamed(edit, names) : edit))
          : value
      return [Object.hasOwn(names, name) ? (names[name] ?? name) : name, edits]
    })
  )

/** Whether a value is an object of JSON. */
export const isMembers = (value: Schema.Json): value is Members =>
  Predicate.isObject(value) && !Array.isArray(value)

/** Whether a value is JSON. */
export const isJson = Schema.is(Schema.Json)
