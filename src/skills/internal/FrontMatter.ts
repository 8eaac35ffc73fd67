/**
 * Parses a `SKILL.md`: front matter in YAML, then instructions.
 */
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as Yaml from "effect/encoding/Yaml"
import * as FailureText from "../../internal/failureText.ts"

/** A fault, and its line in the file, from 1. */
export interface Fault {
  readonly detail: string
  readonly line?: number
}

export interface Parsed {
  readonly name: string
  readonly description: string
  /** The instructions. */
  readonly body: string
}

/** Parses the text of a `SKILL.md` in a folder of this name. */
export const parse = (source: string, folderName: string): Parsed | Fault => {
  const text = source.replace(/^\ufeff/, "").replaceAll("\r\n", "\n")
  const found = /^---[ \t]*\n(?:([^]*?)\n)?---[ \t]*(?:\n([^]*))?$/.exec(text)
  if (found === null) {
    return /^---[ \t]*\n/.test(text)
      ? { line: 1, detail: "the front matter does not end: a line of three hyphens is missing" }
      : { line: 1, detail: "there is no front matter: the first line must be three hyphens" }
  }
  const [, yaml = "", body = ""] = found
  const parsed = Result.orElse(read(yaml), (fault) => byEntry(yaml, fault))
  if (Result.isFailure(parsed)) return parsed.failure
  const { success: fields } = parsed
  if (!Predicate.isObject(fields) || Array.isArray(fields)) {
    return { line: 1, detail: "the front matter has no `name` and `description`" }
  }
  const { description, name } = fields
  const lineOf = (key: string) => {
    const at = yaml.split("\n").findIndex((line) => line.startsWith(`${key}:`))
    return at < 0 ? 1 : at + 2
  }
  const fault = nameFault(name, folderName)
  if (fault !== undefined || !Predicate.isString(name)) {
    return { line: lineOf("name"), detail: fault ?? "`name` is missing" }
  }
  const second = descriptionFault(description)
  if (second !== undefined || !Predicate.isString(description)) {
    return { line: lineOf("description"), detail: second ?? "`description` is missing" }
  }
  return { name, description, body }
}

const read = (yaml: string): Result.Result<unknown, Fault> =>
  Result.try({ try: () => Yaml.parse(yaml), catch: faultOf })

/**
 * The entries of front matter that is no YAML, each read alone. Many writers do not know that `description: Use when: x` and
 * `description: [beta] y` want quotes. Fails with the fault if `name` or `description` cannot be read.
 */
const byEntry = (yaml: string, fault: Fault): Result.Result<object, Fault> => {
  const entries = yaml
    .split(/\n(?=[\w-]+:)/)
    .map((entry) => ({ entry, key: entry.slice(0, entry.indexOf(":")) }))
  if (new Set(entries.map(({ key }) => key)).size < entries.length) return Result.fail(fault)
  const found = entries.map(({ entry, key }) => {
    const value = entry.slice(key.length + 1).trim()
    const lines = value.split("\n").map((line) => line.trim())
    const text = lines.filter((line) => line !== "").join(" ")
    const plain = isMarked(value) ? entry : `${key}: ${JSON.stringify(text)}`
    return Result.getOrElse(
      Result.orElse(read(entry), () => read(plain)),
      () => ({})
    )
  })
  const fields = Object.assign({}, ...found)
  return "name" in fields && "description" in fields ? Result.succeed(fields) : Result.fail(fault)
}

/** Whether a value is a block, a list, a map or in quotes. */
const isMarked = (value: string): boolean =>
  /^[|>][+\-\d]*(?:\s|$)|^(["']).*\1$|^\[.*\]$|^\{.*\}$/s.test(value)

/** The parser counts lines from the front matter, which begins in line 2. */
const faultOf = (thrown: unknown): Fault => {
  const message = FailureText.of(thrown)
  const [, detail = message, line] = /^(.*) at line (\d+)$/s.exec(message) ?? []
  return { line: line === undefined ? 1 : Number(line) + 1, detail }
}

const nameFault = (name: unknown, folderName: string): string | undefined => {
  if (name === undefined || name === null) return "`name` is missing"
  if (!Predicate.isString(name)) return "`name` must be a text: write it in quotes"
  if (name.length > 64 || !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name)) {
    return "`name` must have 1 to 64 lower-case letters, digits and single hyphens between them"
  }
  return name === folderName
    ? undefined
    : `\`name\` must be the name of the folder, ${JSON.stringify(folderName)}, and is ${JSON.stringify(name)}`
}

const descriptionFault = (description: unknown): string | undefined => {
  if (description === undefined || description === null) return "`description` is missing"
  if (!Predicate.isString(description)) return "`description` must be a text: write it in quotes"
  if (description.trim() === "") return "`description` is empty"
  return description.length > 1024
    ? `\`description\` has ${description.length} characters, and 1,024 are allowed`
    : undefined
}
