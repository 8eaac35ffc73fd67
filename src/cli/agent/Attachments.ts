/** Files that go to the model with the prompt: those of `--file`, and those that the prompt names as `@path`. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as ImageFile from "../../media/ImageFile.ts"
import type * as Message from "../../Message.ts"
import * as Folders from "../../skills/Folders.ts"
import * as Files from "../../tools/Files.ts"
import { UsageError } from "../ExitCode.ts"

type Block = Message.User["content"][number]

/** Maximum bytes of a file. No model reads more. */
const maxBytes = 32 * 1024 * 1024

/** A prompt with its files. */
interface Attached {
  readonly text: string
  readonly files: ReadonlyArray<Block>
  /** The words behind an `@` that name no file and do not look like a path, such as `effect/platform`. They stay text. */
  readonly words: ReadonlyArray<string>
}

/**
 * Reads the files. `@"a b.txt"` names a path with spaces, and `\@word` is a plain word. Paths of `--file` start in the folder of the
 * process, those of the prompt in `cwd`. Fails with `UsageError` for a path that does not exist, a link out of the project, an image that
 * is cut, and a file that has no type that models read.
 */
export const read = Effect.fnUntraced(function* (
  words: string,
  { cwd, file }: { readonly cwd: string; readonly file: ReadonlyArray<string> }
): Effect.fn.Return<Attached, UsageError, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const mentions = yield* Effect.forEach(mentioned(words), (mention) => found(mention, cwd))
  const files = [
    ...file.map((name) => ({ name: path.relative("", name), place: path.resolve(name) })),
    ...mentions.flatMap(({ isPath, name }) => (isPath ? [{ name, place: path.resolve(cwd, name) }] : []))
  ]
  const [within = cwd] = yield* Folders.from(cwd)
  for (const { name, place } of files) {
    const real = yield* Folders.outside(place, within)
    if (real !== undefined)
      return yield* new UsageError({
        detail: `${name} is a link out of the project: to send ${real}, give that path.`
      })
  }
  const once = new Map(files.map((each) => [each.place, each]))
  const blocks = yield* Effect.forEach(once.values(), ({ name, place }) => blockOf(name, place))
  const others = new Set(mentions.flatMap(({ isPath, name }) => (isPath ? [] : [name])))
  return { text: words.replaceAll(/(^|\s)\\@/g, "$1@"), files: blocks, words: [...others] }
})

/** A word behind an `@`. */
interface Mention {
  readonly name: string
  readonly isQuoted: boolean
}

/** The words that a prompt has behind an `@`. Longer ones than any path are text. */
const mentioned = (words: string): ReadonlyArray<Mention> =>
  Array.from(words.matchAll(/(?:^|\s)@(?:"([^"]+)"|([^\s"]\S*))/g), ([, quoted, bare = ""]) => ({
    name: quoted ?? bare,
    isQuoted: quoted !== undefined
  })).filter(({ name }) => name.length <= maxPath)

/** Maximum characters of a path, that of Linux. */
const maxPath = 4096

/** The name of a mention, without punctuation that is no part of it, and whether it is a path: names of packages and people are none. */
const found = Effect.fnUntraced(function* ({ isQuoted, name }: Mention, cwd: string) {
  const path = yield* Path.Path
  const files = yield* FileSystem.FileSystem
  const isThere = (place: string) => Effect.orElseSucceed(files.exists(path.resolve(cwd, place)), () => false)
  if (isQuoted || (yield* isThere(name))) return { name, isPath: true }
  const bare = name.replace(/[.,;:!?)\]}'"]+$/, "")
  const folder = path.dirname(bare)
  const isPath =
    looksLikePath.test(bare) || (yield* isThere(bare)) || (folder !== "." && (yield* isThere(folder)))
  return { name: bare, isPath }
})

// It starts as a path, or ends with an extension, which a version such as `@effect/platform@4.1` has not.
const looksLikePath = /^(?:$|[.~]|\/|[A-Za-z]:[\\/])|\.[A-Za-z][A-Za-z0-9]*$/

const blockOf = Effect.fnUntraced(function* (
  name: string,
  place: string
): Effect.fn.Return<Block, UsageError, FileSystem.FileSystem | Path.Path> {
  const files = yield* FileSystem.FileSystem
  const refused = (why: string) => Effect.fail(new UsageError({ detail: `${name}: ${why}` }))
  const info = yield* Effect.catch(files.stat(place), (error) =>
    refused(error.reason._tag === "NotFound" ? "there is no such file" : error.message)
  )
  if (info.type !== "File") return yield* refused("it is no file")
  if (info.size > maxBytes) return yield* refused(`it has more than ${maxBytes / 1024 / 1024} MB`)
  const bytes = yield* Effect.catch(files.readFile(place), (error) => refused(error.message))
  const inline = (mediaType: string) => ({ data: Buffer.from(bytes).toString("base64"), mediaType })
  if (isPdf(bytes)) {
    const fileName = (yield* Path.Path).basename(place)
    return { type: "file", source: inline("application/pdf"), name: fileName }
  }
  const kind = Files.kindOf(bytes)
  if (kind._tag === "Image") {
    const source = inline(kind.mediaType)
    const image = ImageFile.read(source.data)
    return image !== undefined && "fault" in image ? yield* refused(image.fault) : { type: "image", source }
  }
  if (kind._tag === "Binary") return yield* refused("it is neither text nor an image nor a PDF")
  const text = new TextDecoder(kind.encoding).decode(bytes)
  return { type: "text", text: `<file path=${JSON.stringify(name)}>\n${text.trimEnd()}\n</file>` }
})

const isPdf = (bytes: Uint8Array): boolean => new TextDecoder().decode(bytes.subarray(0, 5)) === "%PDF-"
