/** Where a request marks its prompt for the cache of the vendor, and for how long, besides the marks of the application. */
import type { Question } from "./question.ts"

/**
 * The positions of marks, in order of their benefit.
 *
 * The last turn of the user serves the next request. The turn before it was the last one of the previous request: the vendor
 * searches for it, but only twenty blocks back. System prompt and tools come before the first turn.
 */
export const places = ["lastUser", "system", "tools", "userBefore"] as const

export type Place = (typeof places)[number]

/** Returns how long the mark at a place lasts, `undefined` for no mark. */
export type Marks = (place: Place) => "short" | "long" | undefined

/** The parts of a prompt in the order in which a vendor reads them. */
const parts = ["theirTools", "tools", "system", "userBefore", "lastUser", "end"] as const

type Part = (typeof parts)[number]

/** The vendors reject a request with more marks. */
const maxMarks = 4

interface Request {
  readonly options: Question["options"]
  /** The places that the model takes. */
  readonly places: ReadonlyArray<Place>
  /** Whether the model takes long marks. */
  readonly takesLong: boolean
  /** The member of a block that is a mark. */
  readonly member: "cache_control" | "cachePoint"
  /** All JSON of the application. */
  readonly vendor: string
  /** The JSON of the application in each part, which comes at its start. */
  readonly theirs: Partial<Readonly<Record<Part, string>>>
}

/** Chooses the marks that the vendor accepts: four at most, and none that lasts an hour behind one that does not. */
export const choose = (request: Request): Marks => {
  const { member, options, places, takesLong, theirs, vendor } = request
  const left = options.cacheRetention === "none" ? 0 : Math.max(0, maxMarks - marksIn(vendor, member).length)
  const marked = places.slice(0, left)
  const isLong = options.cacheRetention === "long" && takesLong
  const lasting = parts.map((part) => marksIn(theirs[part] ?? "", member))
  return (place) => {
    if (!marked.includes(place)) return undefined
    const at = parts.indexOf(place)
    const mustBeLong = lasting.slice(at + 1).some((marks) => marks.includes("long"))
    const mayBeLong = !lasting.slice(0, at + 1).some((marks) => marks.includes("short"))
    return mustBeLong || (isLong && mayBeLong) ? "long" : "short"
  }
}

/** The marks in a JSON text. */
const marksIn = (json: string, member: string): ReadonlyArray<"short" | "long"> =>
  json
    .split(`"${member}":`)
    .slice(1)
    .filter((rest) => rest.startsWith("{"))
    .map((rest) => (/^\{[^}]*"ttl":"1h"/.test(rest) ? "long" : "short"))

/** The mark of each turn: those of the last turns of the user have one. */
export const ofTurns = <Mark>(
  turns: ReadonlyArray<{ readonly role: string }>,
  mark: (place: Place) => Mark | undefined
): ReadonlyArray<Mark | undefined> => {
  const last = turns.findLastIndex(({ role }) => role === "user")
  const before = turns.findLastIndex(({ role }, index) => role === "user" && index < last)
  return turns.map((_, index) =>
    index === last ? mark("lastUser") : index === before ? mark("userBefore") : undefined
  )
}
