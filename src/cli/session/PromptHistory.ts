/** The prompts that a person has sent in a folder, in a file of the program's data. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Schema from "effect/Schema"
import * as SessionHome from "../../sessions/SessionHome.ts"

/** The most prompts that the file keeps. */
const most = 1_000
/** The file is made anew where it has this much more. */
const slack = 200

const Line = Schema.fromJsonString(Schema.Struct({ prompt: Schema.String }))
const decode = Schema.decodeUnknownOption(Line)

export interface PromptHistory {
  /** The prompts, the oldest first. */
  readonly prompts: ReadonlyArray<string>
  /** Keeps a prompt, unless it begins with a space or is the last one again. A file that cannot be written loses it in silence. */
  readonly add: (prompt: string) => Effect.Effect<void>
}

/** Reads the history of a folder. */
export const open = Effect.fnUntraced(function* (cwd: string) {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = yield* Effect.orDie(SessionHome.home)
  const folder = path.join(home, "history", yield* SessionHome.folderOf(cwd))
  const file = path.join(folder, "history.jsonl")
  const text = yield* Effect.orElseSucceed(files.readFileString(file), () => "")
  const all = text.split("\n").flatMap((line) => Option.toArray(decode(line)))
  const prompts = all.slice(-most).map(({ prompt }) => prompt)
  const lineOf = (prompt: string) => `${JSON.stringify({ prompt })}\n`
  const write = (content: string, flag: "a" | "w") =>
    files
      .makeDirectory(folder, { recursive: true, mode: 0o700 })
      .pipe(Effect.andThen(files.writeFileString(file, content, { flag, mode: 0o600 })))
  if (all.length > most + slack) yield* Effect.ignore(write(prompts.map(lineOf).join(""), "w"))
  const history: PromptHistory = {
    prompts,
    add: (prompt) =>
      Effect.suspend(() => {
        if (prompt.trim() === "" || /^\s/.test(prompt) || prompts.at(-1) === prompt) return Effect.void
        prompts.push(prompt)
        return Effect.ignore(write(lineOf(prompt), "a"))
      })
  }
  return history
})
