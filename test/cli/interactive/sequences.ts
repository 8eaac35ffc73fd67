/**
 * The control sequences in the bytes that a program has sent to its terminal.
 */

/** A pattern in which `ESC`, `BEL` and `C1` stand for these characters. */
const patternOf = ({ raw: [source = ""] }: TemplateStringsArray): RegExp =>
  new RegExp(
    source
      .replaceAll("ESC", String.raw`\u001b`)
      .replaceAll("BEL", String.raw`\u0007`)
      .replaceAll("C1", String.raw`\u0080-\u009f`),
    "gu"
  )

const csi = patternOf`ESC\[[0-?]*[ -/]*[@-~]`
const osc = patternOf`ESC\][^BELESC]*(?:BEL|ESC\\)`
/** DCS, SOS, PM and APC. */
const string = patternOf`ESC[PX^_][^ESC]*ESC\\`
/** Others that begin with an escape. */
const other = patternOf`ESC[ -/]*[0-~]`
const control = patternOf`[\0-\u0008\u000b\u000c\u000e-\u001f\u007fC1]`
const any = new RegExp([csi, osc, string, other, control].map(({ source }) => source).join("|"), "gu")

/** Characters that reorder text. */
const reordering = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const sgr = patternOf`ESC\[[\d;:]*m`

/** What the contract of the session lets the program send, section 11. */
const permitted = [
  sgr,
  // The cursor, and what is erased.
  patternOf`ESC\[\d*[A-G]`,
  patternOf`ESC\[0?[JK]`,
  // The cursor shown or not, bracketed paste, synchronized output, focus.
  patternOf`ESC\[\?(?:25|2004|2026|1004)(?:;(?:25|2004|2026|1004))*[hl]`,
  // Keys, and the query.
  patternOf`ESC\[[><?][\d;]*u`,
  patternOf`ESC\[>4(?:;\d+)?m`,
  patternOf`ESC\[0?c`,
  // The title, a notification, the clipboard, the bell.
  patternOf`ESC\](?:0|9|52);[^C1ESCBEL]*(?:BEL|ESC\\)`,
  patternOf`BEL`
].map(({ source }) => new RegExp(`^(?:${source})$`, "u"))

/** All control sequences, in order. */
export const all = (bytes: string): ReadonlyArray<string> => bytes.match(any) ?? []

/** Those of colours and other looks. */
export const looks = (bytes: string): ReadonlyArray<string> => bytes.match(sgr) ?? []

/** Sequences and characters that the program must not send, each as JSON behind the text before it. */
export const foreign = (bytes: string): ReadonlyArray<string> => {
  const sent = Array.from(bytes.matchAll(any)).filter(
    ([sequence]) => !permitted.some((pattern) => pattern.test(sequence))
  )
  return [...sent, ...bytes.matchAll(reordering)].map(({ 0: text, index }) =>
    JSON.stringify(bytes.slice(Math.max(0, index - 40), index + text.length))
  )
}

/** How often the bell rings. */
export const bells = (bytes: string): number => bytes.replaceAll(osc, "").split("\u0007").length - 1

/** What is left switched on behind these bytes. */
export const leftOn = (bytes: string): ReadonlyArray<string> => {
  const last = (pattern: RegExp) => Array.from(bytes.matchAll(pattern)).at(-1)?.[1]
  const count = (pattern: RegExp) => Array.from(bytes.matchAll(pattern)).length
  const modes = ["2004", "1004", "2026", "1049", "1000", "1002", "1003", "1006"].filter(
    (mode) => last(new RegExp(String.raw`\u001b\[\?${mode}([hl])`, "g")) === "h"
  )
  const pushed = count(patternOf`ESC\[>\d*u`)
  const popped = count(patternOf`ESC\[<\d*u`)
  const modified = last(patternOf`ESC\[>4(?:;(\d+))?m`) ?? "0"
  return [
    ...modes,
    ...(last(patternOf`ESC\[\?25([hl])`) === "l" ? ["hidden cursor"] : []),
    ...(pushed > popped ? [`Kitty keys (${pushed} pushed, ${popped} popped)`] : []),
    ...(modified === "0" ? [] : ["modified keys"])
  ]
}
