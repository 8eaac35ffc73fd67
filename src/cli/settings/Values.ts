/** Readers of the values of settings: names of tools, rules for commands, times, addresses, models. */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as RunOptions from "../../RunOptions.ts"
import * as CommandRules from "../../tools/CommandRules.ts"
import * as Tools from "../../tools/Tools.ts"

/** The tools that the program has. The last needs a person. */
export const tools = [...Tools.names, "skill", "tasks", "ask_user"] as const

type Name = (typeof tools)[number]

const isName = (name: string): name is Name => tools.some((known) => known === name)

/** The items of a list that commas separate. */
export const items = (list: string): ReadonlyArray<string> =>
  list
    .split(",")
    .map((item) => item.trim())
    .filter(Boolean)

/** Names of tools, separated by commas, or `none`. */
export const toolNames = (list: string): Option.Option<ReadonlyArray<Name>> => {
  if (list.trim() === "none") return Option.some([])
  const names = items(list)
  return names.length > 0 && names.every(isName) ? Option.some(names) : Option.none()
}

/** The tools and commands that `--allow` or `--deny` name. */
export interface Named {
  readonly tools: ReadonlySet<string>
  /** Rules for commands of the tool `shell`. */
  readonly commands: ReadonlyArray<CommandRules.Words>
}

/** Names of tools, and `shell(git status)` for a rule, separated by commas. */
export const named = (list: string): Option.Option<Named> => {
  const rules = Array.from(list.matchAll(ruleIn), ([, text = ""]) => CommandRules.parseRule(text))
  const commands = rules.flatMap((rule) => (Result.isSuccess(rule) ? [rule.success] : []))
  const others = items(list.replaceAll(ruleIn, ","))
  const isRead = rules.length === commands.length && rules.length + others.length > 0
  return isRead && others.every((name) => isName(name) || isOfMcp(name))
    ? Option.some({ tools: new Set(others), commands })
    : Option.none()
}

// A rule holds no brackets, because rules cannot read them.
const ruleIn = /(?<=^|,)\s*shell\(([^()]*)\)\s*(?=,|$)/g

const isOfMcp = (name: string): boolean => /^mcp__[\w-]+$/.test(name)

/** All tools and commands of several lists. */
export const together = (lists: ReadonlyArray<Named>): Named => ({
  tools: new Set(lists.flatMap(({ tools }) => [...tools])),
  commands: lists.flatMap(({ commands }) => commands)
})

export const knownTools = `names out of ${tools.join(", ")}`

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours", d: "days" } as const

const isUnit = (unit: string): unit is keyof typeof units => unit in units

/** `90` and `90s` are seconds. Also `500ms`, `5m`, `2h`, `30d`. */
export const duration = (text: string): Option.Option<Duration.Duration> => {
  const [, count, unit = "s"] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(text) ?? []
  return count === undefined || Number(count) === 0 || !isUnit(unit)
    ? Option.none()
    : Option.some(Duration.fromInputUnsafe(`${Number(count)} ${units[unit]}`))
}

/** An address without the slash at its end. */
export const address = (text: string): Option.Option<string> => {
  const url = /^https?:\/\//.test(text) ? URL.parse(text) : null
  return url === null ? Option.none() : Option.some(text.replace(/\/+$/, ""))
}

/** A model, and the effort that follows its id. */
export interface Model {
  /** `provider/id`. */
  readonly name: string
  readonly effort?: RunOptions.ThinkingLevel
}

const isLevel = (text: string): text is RunOptions.ThinkingLevel =>
  RunOptions.ThinkingLevel.literals.some((level) => level === text)

/** `provider/id`, and an effort behind a colon if it is the name of a level: `qwen3:8b` is an id. */
export const model = (text: string): Option.Option<Model> => {
  const colon = text.lastIndexOf(":")
  const effort = text.slice(colon + 1)
  if (text.trim() === "") return Option.none()
  return Option.some(colon > 0 && isLevel(effort) ? { name: text.slice(0, colon), effort } : { name: text })
}

/** Whether a number is whole, and above 0. */
export const isCount = (value: number): boolean => Number.isSafeInteger(value) && value > 0

/** A decimal number for which `isFine` is true. */
export const number =
  (isFine: (value: number) => boolean) =>
  (text: string): Option.Option<number> =>
    /^-?\d+(?:\.\d+)?$/.test(text) && isFine(Number(text)) ? Option.some(Number(text)) : Option.none()

/** One of several words. */
export const literal =
  <const Words extends ReadonlyArray<string>>(words: Words) =>
  (text: string): Option.Option<Words[number]> =>
    Option.fromUndefinedOr(words.find((word) => word === text))

const truths: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["yes", true],
  ["on", true],
  ["false", false],
  ["0", false],
  ["no", false],
  ["off", false]
])

export const truth = (text: string): Option.Option<boolean> =>
  Option.fromUndefinedOr(truths.get(text.trim().toLowerCase()))

export const nonEmpty = (text: string): Option.Option<string> =>
  text === "" ? Option.none() : Option.some(text)

/** A number of requests, and the time for them: a minute unless it is given. */
export const rate = (
  text: string
): Option.Option<{ readonly requests: number; readonly window: Duration.Duration }> => {
  const [, requests = "", time = "1m"] = /^(\d{1,9})(?:\/(.+))?$/.exec(text) ?? []
  return Number(requests) > 0
    ? Option.map(duration(time), (window) => ({ requests: Number(requests), window }))
    : Option.none()
}

/** The name of a header, in lower case. */
export const headerName = (text: string): Option.Option<string> =>
  /^[\w!#$%&'*+.^`|~-]+$/.test(text) ? Option.some(text.toLowerCase()) : Option.none()

/** An origin as browsers send it. */
export const origin = (text: string): Option.Option<string> => {
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null
  return url !== null && `${url.pathname}${url.search}${url.hash}` === "/"
    ? Option.some(url.origin)
    : Option.none()
}

/** The name of a host, in lower case and without its port. */
export const hostName = (text: string): Option.Option<string> => {
  const url = text.includes("/") ? null : URL.parse(`http://${text}`)
  return url !== null && url.hostname !== "" && `${url.username}${url.search}${url.hash}` === ""
    ? Option.some(url.hostname)
    : Option.none()
}

// ───────────────────────── Stores

/** The places that sessions can be kept in: files, an SQLite database, or a PostgreSQL database. */
export type StoreAddress =
  | { readonly _tag: "Files"; readonly directory: string }
  | { readonly _tag: "Sqlite"; readonly filename: string }
  | { readonly _tag: "Postgres"; readonly url: string }

/** The expected address of a store, in words. */
export const storeExpected = "sqlite:FILE, postgres://USER@HOST/DATABASE, or a folder"

/** Reads `sqlite:FILE`, `postgres://…`, `jsonl:DIR`, or the path of a folder or of a file that ends as SQLite databases do. */
export const store = (text: string): Option.Option<StoreAddress> => {
  const [, scheme, rest = ""] = /^([a-z][a-z+]+):(.*)$/s.exec(text) ?? []
  if (text.trim() === "") return Option.none()
  if (scheme === undefined)
    return Option.some(
      /\.(?:db|sqlite3?)$/.test(text)
        ? { _tag: "Sqlite", filename: text }
        : { _tag: "Files", directory: text }
    )
  if (scheme === "postgres" || scheme === "postgresql")
    return URL.canParse(text) ? Option.some({ _tag: "Postgres", url: text }) : Option.none()
  if (rest.trim() === "") return Option.none()
  if (scheme === "sqlite") return Option.some({ _tag: "Sqlite", filename: rest })
  return scheme === "jsonl" ? Option.some({ _tag: "Files", directory: rest }) : Option.none()
}

/** A text without the password of an address in it. */
export const withoutPassword = (text: string): string => text.replace(/(\/\/[^/\s:@]*:)[^/\s@]*@/, "$1…@")

/** Paths of files or folders. */
export const paths = (texts: ReadonlyArray<string>) =>
  texts.every((text) => text.trim() !== "") ? Option.some(texts) : Option.none()
