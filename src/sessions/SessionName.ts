/** The ids of sessions, and the names of files that stand for them. */

/** Most characters of an id. */
const longest = 200

/** Most characters of the name of a file, which has a time and endings beside it. */
const longestName = 200

// A URL with `.` or `..` in its path is another one.
const isPlace = (id: string): boolean => id === "." || id === ".."

/** Whether a session may have an id: any text without control characters that a URL can name. */
export const isId = (id: string): boolean =>
  id.length >= 1 && id.length <= longest && !/[\p{Cc}\p{Cs}]/u.test(id) && !isPlace(id)

const utf8 = new TextEncoder()

const escaped = (text: string): string =>
  Array.from(utf8.encode(text), (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join("")

/** The name for an id, in which every character but letters, digits, `.`, `_` and `-` is escaped, and the first one unless it is a letter or a digit. */
export const of = (id: string): string => id.replace(/^[^A-Za-z0-9]|[^A-Za-z0-9._-]/gu, escaped)

/** The id that a name stands for, `undefined` for a name that stands for none. */
export const idOf = (name: string): string | undefined => {
  try {
    const id = decodeURIComponent(name)
    return of(id) === name ? id : undefined
  } catch {
    return undefined
  }
}

/** Whether a file can have the name for an id. */
export const isName = (id: string): boolean => isId(id) && of(id).length <= longestName
