/** The titles of sessions, and one-line pieces of text. */

/** Most characters of a title. */
const maxTitle = 80

/** The first line of a text that is not empty, cut to the length of a title. */
export const titleOf = (text: string): string => {
  const line = text.split("\n").find((one) => one.trim() !== "") ?? ""
  return cut(line.replace(/\s+/g, " ").trim(), maxTitle)
}

/** The text, cut to a number of characters between two of them. */
export const cut = (text: string, max: number): string => {
  if (text.length <= max) return text
  const characters = Array.from(text.slice(0, max))
  return `${characters.slice(0, -1).join("")}…`
}

/** The part of a text around a place, on one line. */
export const excerptOf = (text: string, at: number, length: number): string => {
  const [start, end] = [Math.max(0, at - 40), Math.min(text.length, at + length + 80)]
  const part = text.slice(start, end).replace(/\s+/g, " ").trim()
  return `${start > 0 ? "…" : ""}${part}${end < text.length ? "…" : ""}`
}
