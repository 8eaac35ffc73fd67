/** Completes commands, their arguments, and paths of files. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import { execFile } from "node:child_process"
import * as FindTool from "../../tools/FindTool.ts"
import * as Inert from "../terminal/Inert.ts"
import * as CommandTable from "./CommandTable.ts"
import type { Session } from "./Session.ts"

interface Completed {
  /** The part of the word that is there. */
  readonly prefix: string
  readonly candidates: ReadonlyArray<string>
}

/** The most candidates. */
const most = 200

/** The candidates for the word before the cursor. */
export const of = Effect.fnUntraced(function* (session: Session, before: string) {
  const none: Completed = { prefix: "", candidates: [] }
  const [, mention] = /(?:^|\s)(@(?:"[^"]*|[^\s"]*))$/.exec(before) ?? []
  if (mention !== undefined) return yield* paths(session, mention)
  const [, command] = /^(\/[a-z]*)$/.exec(before) ?? []
  if (command !== undefined)
    return { prefix: command, candidates: CommandTable.names.filter((name) => name.startsWith(command)) }
  const [, name = "", argument] = /^(\/[a-z]+) +(\S*)$/.exec(before) ?? []
  if (argument === undefined) return none
  const words = CommandTable.argumentsOf(name, session)
  return { prefix: argument, candidates: words.filter((word) => word.startsWith(argument)) }
})

const paths = Effect.fnUntraced(function* (session: Session, mention: string) {
  const isQuoted = mention.startsWith('@"')
  const typed = mention.slice(isQuoted ? 2 : 1)
  const { cwd } = session.settings
  const files = (yield* inGit(cwd)) ?? (yield* inFolder(cwd, typed))
  const depth = typed.split("/").length
  const found = new Set(
    files
      // A name that a terminal would obey cannot stand in the input.
      .filter((file) => file.startsWith(typed) && Inert.exact(file) === file)
      .map((file) => {
        const parts = file.split("/")
        return parts.length > depth ? `${parts.slice(0, depth).join("/")}/` : file
      })
  )
  const candidates = [...found]
    .toSorted()
    .slice(0, most)
    .map((file) =>
      file.includes(" ") || isQuoted ? `@"${file}${file.endsWith("/") ? "" : '"'}` : `@${file}`
    )
  return { prefix: mention, candidates }
})

/** The files of the work tree that git does not ignore, relative to a folder; `undefined` where there is no git. */
const inGit = (cwd: string): Effect.Effect<ReadonlyArray<string> | undefined> =>
  Effect.callback((resume) => {
    const words = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    const child = execFile(
      "git",
      words,
      { cwd, maxBuffer: 64 * 1024 * 1024, timeout: 5_000 },
      (error, stdout) =>
        resume(Effect.succeed(error === null ? stdout.split("\0").filter((file) => file !== "") : undefined))
    )
    return Effect.sync(() => void child.kill())
  })

const decodeOutput = Schema.decodeUnknownOption(
  Schema.Struct({
    content: Schema.Array(Schema.Struct({ text: Schema.String })),
    details: Schema.Struct({ found: Schema.Int })
  })
)

/** Those of a folder without git, by the rules of its `.gitignore`. */
const inFolder = Effect.fnUntraced(function* (cwd: string, typed: string) {
  const { execute } = FindTool.make({ root: (yield* Path.Path).resolve(cwd) })
  const output = yield* Effect.option(execute({ pattern: `./${typed}*` }))
  return Option.match(Option.flatMap(output, decodeOutput), {
    onNone: () => [],
    onSome: ({ content, details }) =>
      content
        .map(({ text }) => text)
        .join("\n")
        .split("\n")
        .slice(0, details.found)
  })
})
