/**
 * The contents of the files of a folder, which show when they are not whole: a head, and one letter many times.
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"

/** How often the letter stands there. */
const size = 100_000

/** A letter many times, in lines. */
export const lines = (letter: string): string => `${letter.repeat(99)}\n`.repeat(size / 100)

export type Contents = ReadonlyMap<string, string>

/** The contents by name; a temporary file that a killed process or command has left is none. */
export const ofFolder = (root: string): Contents =>
  new Map(
    readdirSync(root)
      .filter((name) => !name.startsWith(".") && statSync(join(root, name)).isFile())
      .toSorted()
      .map((name) => [name, readFileSync(join(root, name), "utf8")])
  )

/** The files that are half written, in words. */
export const halfWritten = (root: string): ReadonlyArray<string> =>
  [...ofFolder(root)].flatMap(([name, content]) => {
    const body = content.replace(/^head.*\n/, "")
    return body === lines(body.slice(0, 1)) ? [] : [`${name} is half written`]
  })

export const isSame = (one: Contents, other: Contents): boolean =>
  JSON.stringify([...one]) === JSON.stringify([...other])

/** How a folder differs from contents, in words. */
export const difference = (root: string, contents: Contents): string => {
  const now = ofFolder(root)
  const brief = (text: string | undefined) => text?.slice(0, 20) ?? "absent"
  return [...new Set([...now.keys(), ...contents.keys()])]
    .filter((name) => now.get(name) !== contents.get(name))
    .map((name) => `${name} is ${brief(now.get(name))}, not ${brief(contents.get(name))}`)
    .join(", ")
}
